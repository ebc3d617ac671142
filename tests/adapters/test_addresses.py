"""Which addresses may be reached for others, and that a name that means another one later leads nowhere."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.adapters import checked_http
from service.adapters.addresses import Addresses, NotAHost, NotReached, is_public
from tests.reached import LOOPBACK, loopback

NOT_PUBLIC = [
    "127.0.0.1",
    "127.8.9.10",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "100.100.100.200",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001:db8::1",
    "2001::1",
    "2001:0:7f00:1::",
    "2002:7f00:1::",
    "2002:808:808::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "::8.8.8.8",
]
PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "140.82.112.3",
    "2606:4700::1111",
    "2a00:1450:4001::1",
    "64:ff9b::808:808",
    "::ffff:8.8.8.8",
]


def named(**names: str) -> Addresses:
    return Addresses(resolve=lambda host, port: tuple(names[host].split()), proxies=dict)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_what_is_not_given_out_to_anybody_is_refused_by_itself_and_behind_a_name(address: str) -> None:
    assert not is_public(ip_address(address))
    with pytest.raises(NotReached, match="in no public network; .*FIRSTBAD_PRIVATE_NETWORKS"):
        named().name(address)
    with pytest.raises(NotReached, match=r"the host evil, which is .*, is in no public network"):
        named(evil=address).of("evil", 443)


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public_is_given_as_it_was_checked(address: str) -> None:
    assert named(good=address).of("good", 443) == (address,)


def test_one_address_that_may_not_be_reached_among_others_is_enough() -> None:
    with pytest.raises(NotReached, match="which is 10.0.0.1"):
        named(both="8.8.8.8 10.0.0.1").of("both", 443)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["::ffff:0:0", "64:ff9b::", "::", "2002::", "2001::"]))
def test_an_ipv4_address_within_another_one_is_never_more_public_than_by_itself(number: int, prefix: str) -> None:
    base, inner = int(IPv6Address(prefix)), IPv4Address(number)
    whole = {"2002::": base | number << 80, "2001::": base | (~number & 0xFFFFFFFF)}.get(prefix, base | number)
    assert is_public(inner) or not is_public(IPv6Address(whole))


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "[::1]"])
def test_this_machine_is_known_by_its_other_names_without_a_look_at_the_network(host: str) -> None:
    with pytest.raises(NotReached, match="in no public network"):
        Addresses().name(host)


def test_private_networks_that_the_operator_names_may_be_reached_and_no_others() -> None:
    some = Addresses(private=(ip_network("10.1.0.0/16"),), resolve=lambda host, port: (host,), proxies=dict)
    assert some.of("10.1.2.3", 22) == ("10.1.2.3",)
    assert some.of("::ffff:10.1.2.3", 22) == ("::ffff:10.1.2.3",)
    with pytest.raises(NotReached):
        some.of("10.2.0.1", 22)


def test_only_hosts_that_the_operator_named_are_known() -> None:
    some = Addresses(("github.com", "*.Example.org"), resolve=lambda host, port: ("8.8.8.8",), proxies=dict)
    for host in ("github.com", "GitHub.com", "git.example.org", "a.b.example.org"):
        assert some.of(host, 443)
    for host in ("github.com.evil.org", "xgithub.com", "example.org", "github.com.", "evil.org"):
        with pytest.raises(NotReached):
            some.of(host, 443)
    with pytest.raises(NotReached, match=r"allowed: github.com, \*.Example.org; .*FIRSTBAD_REPO_HOSTS"):
        some.name("evil.org")


def test_a_name_without_an_address_is_told_apart() -> None:
    with pytest.raises(NotAHost, match="'no-such-host.invalid' cannot be found"):
        Addresses().of("no-such-host.invalid", 443)


def test_a_proxy_is_the_environments_and_passed_by_where_that_says_so() -> None:
    some = Addresses(proxies=lambda: {"https": "proxy.corp:3128", "no": "git.corp,10.0.0.1:8443"})
    assert some.proxy("https", "github.com", 443) == "http://proxy.corp:3128"
    assert some.proxy("https", "git.corp", 443) is None
    assert some.proxy("http", "github.com", 80) is None


class Receiver(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked.append(self.headers["Host"])  # type: ignore[attr-defined]
        if self.path == "/slow":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not self.server.over.wait(0.05):  # type: ignore[attr-defined]
                try:
                    self.wfile.write(b"x-still: here\r\n")
                except OSError:
                    return
        self.send_response(301 if self.path == "/moved" else 200)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()


@pytest.fixture
def receiver() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.asked, server.over = [], threading.Event()  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.over.set()  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()


def test_a_request_goes_to_the_address_that_was_checked_and_no_redirect_is_followed(
    receiver: ThreadingHTTPServer,
) -> None:
    found = loopback({"hooks.example.org": "127.0.0.1"}, proxies=dict)
    url = f"http://hooks.example.org:{receiver.server_port}"
    assert checked_http.request("GET", f"{url}/moved", found, limit_s=30).status == 301
    assert receiver.asked == [f"hooks.example.org:{receiver.server_port}"]  # type: ignore[attr-defined]


def test_a_name_that_means_this_machine_when_it_is_connected_to_gets_nothing(receiver: ThreadingHTTPServer) -> None:
    answers = iter(["8.8.8.8", "127.0.0.1", "127.0.0.1"])
    rebound = Addresses(resolve=lambda host, port: (next(answers),), proxies=dict)
    rebound.of("evil.example.org", receiver.server_port)
    with pytest.raises(checked_http.NoAnswer, match=r"which is 127\.0\.0\.1"):
        checked_http.request("GET", f"http://evil.example.org:{receiver.server_port}/", rebound, limit_s=30)
    assert receiver.asked == []  # type: ignore[attr-defined]


def test_who_sends_a_line_now_and_then_gets_no_more_time(receiver: ThreadingHTTPServer) -> None:
    with pytest.raises(checked_http.NoAnswer, match="no answer within 0.5 s"):
        checked_http.request(
            "GET", f"http://127.0.0.1:{receiver.server_port}/slow", loopback(proxies=dict), limit_s=0.5
        )


def test_what_does_not_listen_is_no_answer_and_the_next_address_is_tried(receiver: ThreadingHTTPServer) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(checked_http.NoAnswer, match="ConnectError"):
        checked_http.request("GET", f"http://127.0.0.1:{port}/", loopback(proxies=dict), limit_s=30)
    two = Addresses(private=(LOOPBACK,), resolve=lambda host, port: ("127.0.0.9", "127.0.0.1"), proxies=dict)
    assert checked_http.request("GET", f"http://two:{receiver.server_port}/", two, limit_s=30).status == 200


def test_a_proxy_gets_the_name_and_what_it_must_not_reach_is_refused_before(receiver: ThreadingHTTPServer) -> None:
    there = f"http://127.0.0.1:{receiver.server_port}"
    through = Addresses(proxies=lambda: {"http": there})
    assert checked_http.request("GET", "http://hooks.example.org/", through, limit_s=30).status == 200
    assert receiver.asked == ["hooks.example.org"]  # type: ignore[attr-defined]
    for host in ("127.0.0.1", "2130706433", "localhost"):
        with pytest.raises(checked_http.NoAnswer, match="in no public network"):
            checked_http.request("GET", f"http://{host}/", through, limit_s=30)
    assert len(receiver.asked) == 1  # type: ignore[attr-defined]
