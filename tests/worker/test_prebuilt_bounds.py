"""Indexes that hold what nobody expects, and what is kept of their addresses."""

from __future__ import annotations

import io
import logging
import zipfile
from collections.abc import Iterator

import pytest

from tests.worker.bench import Bench
from tests.worker.test_prebuilt import Try, digest, name_of, refused, serving, wheel_of


@pytest.fixture
def order(process_bench: Bench) -> Iterator[Try]:
    with serving() as server:
        yield Try(process_bench, server)


def test_addresses_are_not_logged_where_they_may_hold_secrets(order: Try, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    version = f"1.0+g{order.sha[:9]}"
    path = f"/{name_of(version)}?token=t0ken"
    url = order.server.put(path.replace("+", "%2B"), wheel_of(version)).replace("http://", "http://ann:s3cret@")
    assert order(url).origin == "prebuilt"
    assert not [line for line in caplog.messages if "s3cret" in line or "t0ken" in line]


def test_versions_of_thousands_of_digits_are_passed_over(order: Try) -> None:
    names = [name_of("1" * 5000), f"tinypkg-1-{'1' * 5000}-py3-none-any.whl"]
    url = order.server.page("/simple/tinypkg/", *({"filename": name, "url": "x.whl"} for name in names))
    assert "no wheel of tinypkg for this Python" in refused(order(url))
    assert "no name of a wheel" in refused(order(order.server.url(f"/{names[0]}")))


def test_a_wheel_that_calls_itself_by_such_a_version_is_not_believed(order: Try) -> None:
    content = wheel_of("1.0")
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        texts = {name: old.read(name).decode() for name in old.namelist() if not name.endswith("/RECORD")}
        info = "tinypkg-1.0.dist-info"
        texts[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: tinypkg\nVersion: {'1' * 5000}\n"
        lines = [f"{name},sha256={digest(text)},{len(text.encode())}\n" for name, text in texts.items()]
        for name, text in {**texts, f"{info}/RECORD": "".join([*lines, f"{info}/RECORD,,\n"])}.items():
            new.writestr(name, text)
    said = refused(order(order.server.put(f"/{order.sha}/{name_of('1.0')}", made.getvalue())))
    assert "is of no version" in said
