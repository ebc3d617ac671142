"""The facts of a run that is over: what it came to, what its log shows, what its script or check told."""

from __future__ import annotations

import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from worker import contract, observe
from worker.build.wheel_files import DAMAGED
from worker.contract import Outcome, ProbeOrder, Reproduction
from worker.observe.metric import number_of
from worker.observe.told import told
from worker.pipeline.logs import keep_log
from worker.pipeline.replaced import replaced
from worker.pipeline.runs import SPEAKING, Run, Site
from worker.run.job import Job, open_output

RUN_LINES, BUILD_LINES = 20, 50
SAID_BYTES = 1024 * 1024
METADATA = (".dist-info", ".data", ".pth")
#: What wheels hold besides their package, and others too.
COMMON = {"", "tests", "test", "docs", "examples", "benchmarks", "tools", "scripts"}


@dataclass(frozen=True)
class Wanted:
    """What an outcome should say. `name` of its log; `last`: the phase it ended in when nothing tells.

    `project`: the packages under test, by which the failure is found in the log; None: it is not looked for.
    """

    name: str
    last: str
    failure: str | None = None
    lines: int = RUN_LINES
    project: tuple[str, ...] | None = None


def outcome(site: Site, run: Run, wanted: Wanted) -> Outcome:
    """The facts of a run, its log stored. Errors: NodeFault."""
    inside = run.inside
    run.check()
    path = keep_log(site.store, run.log.path, wanted.name)
    with run.log.path.open("rb") as text:
        last_lines = observe.last_lines(text, wanted.lines)
        text.seek(0)
        seen = (inside.failure_seen if inside else None) or observe.first_with(text, wanted.failure)
    timed_out = inside.timed_out if inside else run.overdue
    return Outcome(
        exit_status=inside.exit_status if inside else None,
        signal=inside.signal if inside else None,
        ready=inside.ready if inside else None,
        timed_out=timed_out,
        out_of_memory=run.ran.out_of_memory,
        ended_in=inside.ended_in if inside else wanted.last,
        phases=run.phases(),
        log=contract.Log(path=path, bytes=run.log.bytes, cut=run.log.cut, last_lines=last_lines),
        failure_seen=observe.readable(seen.encode()) if seen else None,
        environment={**(inside.facts if inside else {}), **run.ran.facts, "node": site.node},
        dependencies=inside.installed if inside else {},
        **(_shown(run.log.path, wanted.project, hang=timed_out) if wanted.project is not None else {}),
    )


def _shown(log: Path, project: tuple[str, ...], *, hang: bool) -> dict[str, Any]:
    with log.open("rb") as lines:
        shown = observe.shown(lines, project, hang=hang)
    signature = shown.signature
    return {
        "signature": contract.Signature.model_validate(asdict(signature)) if signature is not None else None,
        "signs": tuple(contract.Sign.model_validate(asdict(sign)) for sign in shown.signs),
    }


def spoken(run: Run, reproduction: Reproduction) -> dict[str, Any]:
    """What a probe's outcome says besides, by the names of its fields."""
    inside = run.inside
    if inside is None:
        return {}
    found: dict[str, Any] = {"told": _told(inside.told)}
    if inside.replaced is not None:
        with run.log.path.open("rb") as log:
            found["replaced"] = replaced(inside.replaced, reproduction, log, _began_to_speak(run))
    return found


def _told(line: str | None) -> contract.Told | None:
    found = told((line or "").encode("utf-8", "replace"))
    return contract.Told(verdict=found.verdict, reason=found.reason) if found is not None else None


def _began_to_speak(run: Run) -> float:
    """Seconds of the epoch, when the wheel was installed and the script or the server began."""
    assert run.inside is not None
    starts = (phase.at_s for phase in run.inside.phases if phase.name in ("script", "start", "warmup"))
    return run.inside.began + next(starts, 0.0)


def measured(run: Run, job: Job, order: ProbeOrder) -> tuple[contract.Measurement, ...]:
    """The numbers of the metrics in what the script or the check wrote."""
    if not order.metrics or run.inside is None or run.inside.ended_in not in SPEAKING:
        return ()
    file = open_output(job, "said")
    if file is None:
        return ()
    with file:
        text = file.read(SAID_BYTES)
    return tuple(_measurement(text, metric) for metric in order.metrics)


def _measurement(text: bytes, metric: contract.Metric) -> contract.Measurement:
    return contract.Measurement(name=metric.name, **asdict(number_of(text, metric)))


def facts_of(order: ProbeOrder) -> dict[str, str]:
    """Which wheel was tried."""
    found = {"wheel_key": order.wheel_key} if order.wheel_key is not None else {}
    try:
        name, version, *_ = parse_wheel_filename((order.wheel or "").rpartition("/")[2])
    except InvalidWheelFilename:
        return found
    return {**found, "package": f"{name} {version}"}


def packages_of(wheel: Path) -> tuple[str, ...]:
    """What it is imported as."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            tops = {name.partition("/")[0] for name in archive.namelist()}
    except (OSError, *DAMAGED):
        return ()
    return tuple(sorted({top.partition(".")[0] for top in tops if not top.endswith(METADATA)} - COMMON))
