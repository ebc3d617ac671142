"""One HTTP request to a host that others named: to a checked address, without redirects, within a time."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import httpcore

from service.adapters.addresses import Addresses, NotReached, resolves_itself

_DEFAULT_PORTS = {"http": 80, "https": 443}


class NoAnswer(Exception):
    """Why there was none; nothing of it is a secret."""


@dataclass(frozen=True)
class Answer:
    status: int
    location: str = ""


def request(
    method: str,
    url: str,
    addresses: Addresses,
    *,
    limit_s: float,
    headers: Mapping[str, str] | None = None,
    content: bytes = b"",
) -> Answer:
    """The body of the answer is not read. Errors: NoAnswer."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _DEFAULT_PORTS[parts.scheme]
    try:
        addresses.name(host)
        proxy = addresses.proxy(parts.scheme, host, port)
        if proxy is not None and not resolves_itself(proxy):
            addresses.of(host, port)
        with _pool(addresses, proxy, monotonic() + limit_s) as pool:
            seconds = dict.fromkeys(("connect", "read", "write", "pool"), limit_s)
            with pool.stream(
                method, url, headers=list((headers or {}).items()), content=content, extensions={"timeout": seconds}
            ) as answer:
                found = {name.lower(): value for name, value in answer.headers}
                return Answer(answer.status, found.get(b"location", b"").decode("latin-1"))
    except NotReached as error:
        raise NoAnswer(str(error)) from error
    except httpcore.TimeoutException as error:
        raise NoAnswer(f"there was no answer within {limit_s:g} s") from error
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError, ssl.SSLError, OSError) as error:
        raise NoAnswer(f"{type(error).__name__}: {error}"[:300]) from error


def _pool(addresses: Addresses, proxy: str | None, until: float) -> httpcore.ConnectionPool:
    """Of one connection, which is not used again."""
    context = ssl.create_default_context()
    if proxy is None:
        return httpcore.ConnectionPool(context, max_connections=1, network_backend=_Backend(addresses, until))
    parts = urlsplit(proxy)
    if parts.scheme not in _DEFAULT_PORTS:
        raise NoAnswer(f"{parts.scheme} proxies are not used for this; name an http proxy")
    login = (parts.username or "", parts.password or "") if parts.username is not None else None
    there = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return httpcore.HTTPProxy(
        there, login, ssl_context=context, max_connections=1, network_backend=_Backend(None, until)
    )


class _Backend(httpcore.NetworkBackend):
    """`addresses`: None for a host that the operator named."""

    def __init__(self, addresses: Addresses | None, until: float) -> None:
        self._addresses, self._until, self._plain = addresses, until, httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failed: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in (host,) if self._addresses is None else self._addresses.of(host, port):
            try:
                opened = self._plain.connect_tcp(address, port, _left(self._until), local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
            else:
                return _Stream(opened, self._until)
        raise failed


class _Stream(httpcore.NetworkStream):
    """Whoever sends a byte now and then gets no more time for it."""

    def __init__(self, stream: httpcore.NetworkStream, until: float) -> None:
        self._stream, self._until = stream, until

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(self._until))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(self._until))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, _left(self._until)), self._until)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(until: float) -> float:
    """Errors: httpcore.TimeoutException, which a time-out of 0 would not be."""
    left = until - monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("the time is over")
    return left
