"""A pipeline with its folders and a small repository, and what tests ask of it."""

from __future__ import annotations

import itertools
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import zstandard

from tests.repositories import NewCommit, build_repository
from worker.contract import (
    BuildOrder,
    BuildResult,
    Limits,
    Log,
    Outcome,
    ProbeOrder,
    ProbeResult,
    Reproduction,
    Sandbox,
    Serve,
    Source,
)
from worker.pipeline import Pipeline
from worker.run.stop import Stop

_numbers = itertools.count(1)

#: A build backend without a dependency: what uv calls to make the wheel.
BACKEND = """
import os, zipfile

def build_wheel(out, config_settings=None, metadata_directory=None):
    name = "tinypkg-1.0-py3-none-any.whl"
    info = "tinypkg-1.0.dist-info"
    with zipfile.ZipFile(os.path.join(out, name), "w") as wheel:
        wheel.write("tinypkg.py")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: tinypkg\\nVersion: 1.0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\\ntinypkg = tinypkg:main\\n")
        wheel.writestr(f"{info}/RECORD", f"tinypkg.py,,\\n{info}/METADATA,,\\n{info}/WHEEL,,\\n{info}/RECORD,,\\n")
    return name
"""
FILES = {
    "hello.txt": "hello\n",
    "tinypkg.py": "WHERE = __file__\n\ndef main():\n    print('tinypkg says hello')\n",
    "backend.py": BACKEND,
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n\n'
    '[project]\nname = "tinypkg"\nversion = "1.0"\n',
    ".gitattributes": "hello.txt export-ignore\n",
}
UV_BUILD = 'uv build --wheel --out-dir "$FIRSTBAD_OUT"'
SERVER = "python3 -u -m http.server --bind 127.0.0.1 $FIRSTBAD_PORT"


def make_repository(path: Path) -> tuple[str, ...]:
    broken = {**FILES, "pyproject.toml": FILES["pyproject.toml"].replace('"backend"', '"nowhere"')}
    return build_repository(path, [NewCommit(files=FILES), NewCommit(files=broken)])


def stored_log(pipeline: Pipeline, log: Log) -> bytes:
    assert pipeline.site.store.local is not None
    return zstandard.decompress((pipeline.site.store.local / log.path).read_bytes())


def said_to_hold(card: Path, pid: int) -> None:
    """Comes back when somebody has read that this process holds the declared card, which it does no more then."""
    os.mkfifo(card)
    with card.open("w") as file:
        card.unlink()
        file.write(str(pid))


def running(marker: str) -> list[psutil.Process]:
    """Processes, inside sandboxes too, of which an argument is the marker."""
    return [process for process in psutil.process_iter(["cmdline"]) if marker in (process.info["cmdline"] or [])]


@dataclass
class Bench:
    pipeline: Pipeline
    repository: Path
    shas: tuple[str, ...]
    sandbox: Sandbox
    limits: dict[str, Any] = field(default_factory=lambda: {"timeout_s": 60.0})

    def source(self, number: int = 0) -> Source:
        return Source(repo=str(self.repository), sha=self.shas[number], mirror=str(self.repository / ".git"))

    def order(self, script: str | None = None, **changed: Any) -> ProbeOrder:
        reproduction = Reproduction(
            script=script,
            serve=changed.pop("serve", None),
            check=changed.pop("check", None),
            failure=changed.pop("failure", None),
        )
        sandbox = self.sandbox.model_copy(update={"network": changed.pop("network", "none")})
        values = {
            "bisection": "b1",
            "probe": f"p{next(_numbers)}",
            "attempt": 1,
            "source": self.source(),
            "reproduction": reproduction,
            "sandbox": sandbox,
            "limits": Limits(**{**self.limits, **changed.pop("limits", {})}),
        }
        return ProbeOrder(**{**values, **changed})

    def probe(self, script: str | None = None, *, stop: Stop | None = None, **changed: Any) -> ProbeResult:
        result = self.pipeline.probe(self.order(script, **changed), stop or Stop())
        assert result is not None
        return result

    def outcome(self, script: str | None = None, **changed: Any) -> Any:
        result = self.probe(script, **changed)
        assert result.fault is None, result.fault
        return result.outcome

    def serve(self, command: str = SERVER, check: str | None = None, **changed: Any) -> Any:
        given = {"within_s": 30.0, "ready_http": "/", **changed.pop("spec", {})}
        return self.outcome(serve=Serve(command=command, **given), check=check, **changed)

    def log(self, outcome: Any) -> bytes:
        return stored_log(self.pipeline, outcome.log)

    def text(self, outcome: Any) -> list[str]:
        return [line[25:].decode("utf-8", "replace") for line in self.log(outcome).splitlines()]

    def build(
        self, command: str = UV_BUILD, *, number: int = 0, stop: Stop | None = None, **changed: Any
    ) -> BuildResult:
        values = {
            "key": f"k{next(_numbers)}",
            "attempt": 1,
            "source": self.source(number),
            "command": command,
            "sandbox": self.sandbox,
            "limits": Limits(**{**self.limits, **changed.pop("limits", {})}),
        }
        result = self.pipeline.build(BuildOrder(**{**values, **changed}), stop or Stop())
        assert result is not None
        return result

    def job(self, id: str) -> Path:
        return self.pipeline.site.work_dir / "jobs" / f"{id}.1"

    def left(self) -> list[Path]:
        """What runs that are over have left, or what runs."""
        assert self.pipeline.site.bin.wait(60.0)
        folders = (self.pipeline.site.work_dir / "jobs", self.pipeline.site.bin.folder)
        return [path for folder in folders if folder.exists() for path in folder.iterdir()]


class Background(threading.Thread):
    """A probe under way in a thread of its own."""

    def __init__(self, bench: Bench, order: ProbeOrder) -> None:
        super().__init__(daemon=True)
        self.bench, self.order, self.stop = bench, order, Stop()
        self.result: ProbeResult | None = None
        self.start()

    def run(self) -> None:
        self.result = self.bench.pipeline.probe(self.order, self.stop)

    def finished(self, seconds: float = 60.0) -> ProbeResult | None:
        self.join(seconds)
        assert not self.is_alive(), "the probe goes on and on"
        return self.result


def values_of(outcome: Outcome) -> tuple[float, ...]:
    """Of its metrics, those that were found."""
    return tuple(found.value for found in outcome.measurements if found.value is not None)
