"""Wheels from indexes: which are taken, and which are not believed."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.worker.bench import Bench, stored_log
from worker.build.prebuilt import fitting
from worker.build.recorded_commit import recorded
from worker.contract import BuildResult, Fixup

JSON = "application/vnd.pypi.simple.v1+json"
BUILDS = "exit 3"


def wheel_of(version: str, files: dict[str, str] | None = None, *, name: str = "tinypkg", record: str = "") -> bytes:
    """A wheel with a RECORD as the format asks for; `record` takes its place when given."""
    info = f"{name}-{version}.dist-info"
    inside = {
        f"{name}/__init__.py": "",
        **(files or {}),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{path},sha256={digest(text)},{len(text.encode())}\n" for path, text in inside.items()]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in inside.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", record or "".join([*lines, f"{info}/RECORD,,\n"]))
    return made.getvalue()


def digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@dataclass
class Server:
    """`answers`: by path, a status, a kind and a content."""

    port: int = 0
    answers: dict[str, tuple[int, str, bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def put(self, path: str, content: bytes, kind: str = "application/octet-stream", status: int = 200) -> str:
        self.answers[path] = (status, kind, content)
        return self.url(path)

    def page(self, path: str, *files: dict[str, Any]) -> str:
        content = {"meta": {"api-version": "1.0"}, "name": "tinypkg", "files": list(files)}
        return self.put(path, json.dumps(content).encode(), JSON)


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.append(self.path)
            status, kind, content = server.answers.get(self.path, (404, "text/plain", b""))
            self.send_response(status)
            if status in (301, 302):
                self.send_header("Location", content.decode())
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.port = http.server_address[1]
    threading.Thread(target=http.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


@dataclass(frozen=True)
class Try:
    bench: Bench
    server: Server

    @property
    def sha(self) -> str:
        return self.bench.shas[0]

    def __call__(self, *indexes: str, **changed: Any) -> BuildResult:
        """A build that fails unless a prebuilt wheel is taken."""
        return self.bench.build(BUILDS, indexes=indexes, **{"package": "tinypkg", **changed})


@pytest.fixture
def order(process_bench: Bench, server: Server) -> Try:
    return Try(process_bench, server)


def name_of(version: str, tag: str = "py3-none-any") -> str:
    return f"tinypkg-{version}-{tag}.whl"


def refused(result: BuildResult) -> str:
    """The one note of an order that fell through to the build, which fails."""
    assert result.wheel is None and result.fault is None
    assert result.failure is not None and result.failure.exit_status == 3
    (note,) = result.notes
    return note


# What is taken.


def test_a_wheel_at_an_address_is_taken_when_its_version_names_the_commit(order: Try) -> None:
    version = f"1.0.dev3+g{order.sha[:9]}"
    result = order(order.server.put(f"/{order.sha}/{name_of(version)}".replace("+", "%2B"), wheel_of(version)))
    assert result.wheel is not None and result.origin == "prebuilt" and result.notes == ()
    assert result.wheel.name == name_of(version)
    log = stored_log(order.bench.pipeline, result.log).decode()
    assert f"fetched {name_of(version)} from 127.0.0.1" in log


@pytest.mark.parametrize("local", ["{sha}", "g{short}", "cu126.g{short}", "{short}.d20250925"])
def test_a_commit_is_told_from_each_form_of_a_local_version(order: Try, local: str) -> None:
    version = "1.0+" + local.format(sha=order.sha, short=order.sha[:8])
    result = order(order.server.put(f"/{name_of(version)}", wheel_of(version)))
    assert result.origin == "prebuilt", result.notes


@pytest.mark.parametrize(
    ("member", "text"),
    [
        ("tinypkg/_version.py", "__version__ = version = '1.0'\n__commit_id__ = commit_id = 'g{short}'\n"),
        ("tinypkg/version.py", "git_version: str = '{sha}'\n"),
        ("tinypkg/_build_info.json", '{{"commit": "{sha}"}}'),
        ("tinypkg/_commit.py", 'COMMIT = "{sha}"\n'),
        ("tinypkg/_C/build_info.py", "GIT_REVISION = '{sha}'\n"),
    ],
)
def test_a_commit_is_told_from_a_file_that_records_it(order: Try, member: str, text: str) -> None:
    content = wheel_of("9.9", {member: text.format(sha=order.sha, short=order.sha[:7])})
    result = order(order.server.put(f"/{name_of('9.9')}", content))
    assert result.origin == "prebuilt", result.notes


def test_a_version_alone_is_enough_where_the_address_names_the_commit(order: Try) -> None:
    result = order(order.server.put(f"/{order.sha}/{name_of('1.0')}", wheel_of("1.0")))
    assert result.origin == "prebuilt", result.notes


def test_the_page_of_an_index_leads_to_the_wheel_of_the_commit(order: Try) -> None:
    version, other = f"1.0+g{order.sha[:7]}", "2.0+gffffffffff"
    content = wheel_of(version)
    hashes = {"sha256": hashlib.sha256(content).hexdigest()}
    files = [
        {"filename": name_of(other), "url": f"../{name_of(other)}", "hashes": {}},
        {"filename": name_of(version, "cp27-cp27m-win32"), "url": "no.whl", "hashes": {}},
        {"filename": "tinypkg-1.0.tar.gz", "url": "no.tar.gz", "hashes": {}},
        {"filename": name_of(version), "url": "/files/x.whl", "hashes": hashes},
    ]
    order.server.put("/files/x.whl", content)
    result = order(order.server.page("/simple/tinypkg/", *files))
    assert result.origin == "prebuilt" and result.wheel.name == name_of(version), result.notes
    assert result.wheel.sha256 == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("kind", ["text/html", "text/html; charset=utf-8", "binary/octet-stream"])
def test_a_page_in_html_does_too_whatever_it_is_called(order: Try, kind: str) -> None:
    version = f"1.0+g{order.sha[:7]}"
    content = wheel_of(version)
    order.server.put(f"/files/{name_of(version)}".replace("+", "%2B"), content)
    href = f"../../files/{name_of(version)}".replace("+", "%2B") + f"#sha256={hashlib.sha256(content).hexdigest()}"
    url = order.server.put("/x/tinypkg/", f"<html><a href='{href}'>{name_of(version)}</a></html>".encode(), kind)
    assert order(url).origin == "prebuilt"


def test_a_redirect_is_followed(order: Try) -> None:
    version = f"1.0+{order.sha}"
    there = order.server.put("/there", wheel_of(version))
    url = order.server.put(f"/{name_of(version)}", there.encode(), status=302)
    assert order(url).origin == "prebuilt"


def test_a_wheel_under_the_name_of_the_newest_gets_its_own_name(order: Try) -> None:
    version = f"1.0.dev7+g{order.sha[:8]}"
    result = order(order.server.put(f"/{order.sha}/{name_of('1.0.dev0')}", wheel_of(version)))
    assert result.wheel is not None and result.wheel.name == name_of(version)


def test_the_first_index_that_has_it_is_taken(order: Try) -> None:
    version = f"1.0+{order.sha}"
    url = order.server.put(f"/b/{name_of(version)}", wheel_of(version))
    result = order(order.server.url(f"/a/{name_of(version)}"), url, order.server.url("/never"))
    assert result.origin == "prebuilt" and "/never" not in order.server.asked
    assert result.notes == ("no prebuilt wheel: not in the index 127.0.0.1",)


# What is not there.


@pytest.mark.parametrize("status", [404, 410])
def test_what_is_not_there_is_built(order: Try, status: int) -> None:
    note = refused(order(order.server.put(f"/{name_of('1.0')}", b"", status=status)))
    assert note == "no prebuilt wheel: not in the index 127.0.0.1"


@pytest.mark.parametrize("status", [500, 503, 429, 403, 401])
def test_an_index_that_fails_is_a_note(order: Try, status: int) -> None:
    note = refused(order(order.server.put(f"/{name_of('1.0')}", b"", status=status)))
    assert note == f"no prebuilt wheel: the index 127.0.0.1 answers {status}"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/simple/tinypkg/", "nonsense", "ftp://127.0.0.1/x", "http://[/"])
def test_an_index_that_cannot_be_reached_is_a_note(order: Try, url: str) -> None:
    assert "cannot be reached" in refused(order(url))


def test_a_redirect_without_end_is_a_note(order: Try) -> None:
    assert "cannot be reached" in refused(order(order.server.put("/loop/", b"/loop/", status=302)))


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (JSON, b"{"),
        (JSON, b"[]"),
        (JSON, b'{"files": [{"url": 3}]}'),
        (JSON, b"[" * 100_000),
        ("text/html", b"<a href='x.whl#y'>x</a>"),
        ("text/html", b'<meta name="pypi:repository-version" content="2.0">'),
    ],
)
def test_what_is_no_page_of_an_index_is_a_note(order: Try, kind: str, content: bytes) -> None:
    assert "no page of a project" in refused(order(order.server.put("/p/", content, kind)))


def test_a_page_without_a_wheel_for_this_python_is_a_note(order: Try) -> None:
    name = name_of(f"1.0+{order.sha}", "cp27-cp27m-win32")
    url = order.server.page("/p/", {"filename": name, "url": "x", "hashes": {}})
    assert "no wheel of tinypkg for this Python" in refused(order(url))


def test_the_address_of_a_wheel_for_another_python_is_a_note(order: Try) -> None:
    name = name_of(f"1.0+{order.sha}", "cp27-cp27m-win32")
    assert "does not fit this Python" in refused(order(order.server.put(f"/{name}", wheel_of("1.0"))))


def test_credentials_of_an_index_are_not_told(order: Try) -> None:
    assert "secret" not in refused(order("http://name:secret@127.0.0.1:1/simple/"))


# What is not believed.


def not_believed(order: Try, version: str, content: bytes) -> str:
    note = refused(order(order.server.put(f"/{order.sha}/{name_of(version)}", content)))
    assert not list((order.bench.pipeline.site.store.local / "wheels").rglob("*.whl"))
    return note


def test_a_wheel_that_records_another_commit_is_not_believed(order: Try) -> None:
    version = "1.0+gdeadbeef"
    assert "records another commit, deadbeef" in not_believed(order, version, wheel_of(version))


def test_a_file_that_records_another_commit_is_not_believed_whatever_the_version(order: Try) -> None:
    content = wheel_of("1.0", {"tinypkg/_version.py": f"commit_id = '{'d' * 40}'\n"})
    assert "in tinypkg/_version.py" in not_believed(order, "1.0", content)


def test_one_commit_among_several_that_a_wheel_records_is_not_enough(order: Try) -> None:
    """Such as that of its parent."""
    version = "1.0+gfffffff"
    content = wheel_of(version, {"tinypkg/build_info.py": f'commit = "fffffffaa"\nbase_commit = "{order.sha}"\n'})
    said = refused(order(order.server.put(f"/{order.sha}/{name_of(version)}".replace("+", "%2B"), content)))
    assert "another commit, fffffff" in said


def test_a_release_says_nothing_about_its_commit(order: Try) -> None:
    """Its version is that of pyproject.toml, which hundreds of commits have."""
    note = refused(order(order.server.put(f"/latest/{name_of('1.0')}", wheel_of("1.0"))))
    assert "tinypkg 1.0 does not record its commit" in note


def test_a_release_of_another_version_is_not_believed(order: Try) -> None:
    assert "does not record its commit" in not_believed(order, "1.1", wheel_of("1.1"))


def test_the_date_of_a_changed_tree_is_no_commit(order: Try) -> None:
    version = "2.0+d20250925"
    assert "does not record its commit" in not_believed(order, version, wheel_of(version))


def test_a_wheel_of_another_project_is_not_believed(order: Try) -> None:
    version = f"1.0+{order.sha}"
    url = order.server.put(f"/other-{version}-py3-none-any.whl", wheel_of(version, name="other"))
    assert "the wheel is of other, not of tinypkg" in refused(order(url))


def test_a_wheel_of_another_project_under_this_name_is_not_believed(order: Try) -> None:
    version = f"1.0+{order.sha}"
    note = not_believed(order, version, wheel_of(version, name="other"))
    assert "not believed" in note or "RECORD" in note


def test_a_wheel_with_another_hash_than_the_page_names_is_not_believed(order: Try) -> None:
    version = f"1.0+{order.sha}"
    order.server.put("/x.whl", wheel_of(version))
    file = {"filename": name_of(version), "url": "/x.whl", "hashes": {"sha256": "0" * 64}}
    assert "the sha256 that the index names" in refused(order(order.server.page("/p/", file)))


def test_a_wheel_that_is_not_what_its_record_says_is_not_believed(order: Try) -> None:
    version = f"1.0+{order.sha}"
    lines = f"tinypkg/__init__.py,sha256={digest('other')},0\ntinypkg-{version}.dist-info/RECORD,,\n"
    assert "RECORD" in not_believed(order, version, wheel_of(version, record=lines))


def test_what_is_no_wheel_is_not_believed(order: Try) -> None:
    assert "no zip file" in not_believed(order, "1.0", b"<html>not found, with status 200</html>")


def test_an_evil_member_is_not_believed(order: Try) -> None:
    version = f"1.0+{order.sha}"
    assert "leads outside" in not_believed(order, version, wheel_of(version, {"../evil.py": "x"}))


@pytest.mark.parametrize("name", ["../../tinypkg-1.0-py3-none-any.whl", "tinypkg-1.0-py3-none-..%2F..%2Fany.whl"])
def test_a_file_of_a_page_cannot_be_put_elsewhere(order: Try, name: str) -> None:
    order.server.put("/x.whl", wheel_of(f"1.0+{order.sha}"))
    result = order(order.server.page("/p/", {"filename": name, "url": "/x.whl", "hashes": {}}))
    assert "no prebuilt wheel" in refused(result)


def test_a_commit_with_fixups_is_never_fetched(order: Try) -> None:
    version = f"1.0+{order.sha}"
    url = order.server.put(f"/{name_of(version)}", wheel_of(version))
    patch = "--- a/hello.txt\n+++ b/hello.txt\n@@ -1 +1 @@\n-hello\n+goodbye\n"
    source = order.bench.source().model_copy(update={"fixups": (Fixup(name="p", patch=patch),)})
    assert "fix-ups" in refused(order(url, source=source)) and order.server.asked == []


# What a wheel says of itself, and what fits.


def test_vendored_projects_do_not_speak_for_the_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / name_of("1.0")
    wheel.write_bytes(wheel_of("1.0", {"tinypkg/_vendor/other/_version.py": f"commit = '{'a' * 40}'"}))
    assert recorded(wheel).commits == ()


def test_tags_are_those_of_the_python_that_is_asked_for() -> None:
    found = [str(tag) for tag in fitting((3, 9), ["manylinux_2_17_x86_64"])]
    assert found[0] == "cp39-cp39-manylinux_2_17_x86_64"
    assert {"cp38-abi3-manylinux_2_17_x86_64", "py3-none-any", "py3-none-manylinux_2_17_x86_64"} <= set(found)
    assert not any(tag.startswith(("cp310", "cp311")) or "x86_64" in tag and "manylinux" not in tag for tag in found)


def test_the_python_of_the_order_decides_what_fits(order: Try) -> None:
    version = f"1.0+{order.sha}"
    url = order.server.put(f"/{name_of(version, 'cp39-cp39-linux_x86_64')}", wheel_of(version))
    assert "does not fit this Python" in refused(order(url))
    fits = dataclasses.replace(order.bench, sandbox=order.bench.sandbox.model_copy(update={"python": "3.9"}))
    assert fits.build(BUILDS, indexes=(url,), package="tinypkg").origin == "prebuilt"
