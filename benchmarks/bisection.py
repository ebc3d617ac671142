"""`make bench`: a whole bisection on a running embedded service beside `git bisect run` of the same script.

The script only looks at the tree, so that what is measured is everything else. The two take turns on the same
machine; ratios are of pairs. Printed as well: the time from one verdict to the start of the next probe; and, as "led",
the same bisection where the script prints what the example's server prints when it fails, so that the search knows
where to look first.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from examples.demo import Service
from examples.generate import Example, Options, generate
from firstbad import Client
from service.doors.api.views import ProbeView
from tests.observe.logs import text_of

QUIET = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
}


@dataclass(frozen=True)
class Run:
    """Seconds from submission to answer, as the service's own clock has them; `gaps_s`: verdict to next start."""

    wall_s: float
    probes: int
    gaps_s: tuple[float, ...] = ()


def main() -> int:
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="firstbad-bench-") as folder:
        example = generate(Path(folder) / "tinyserve", Options())
        script = _script(example)
        with Service(Path(folder) / "home", arguments.port) as url:
            return _compare(Client(url), example, script, Path(folder), arguments.pairs)


def _compare(client: Client, example: Example, script: str, folder: Path, pairs: int) -> int:
    git, ours = [], {width: [] for width in (1, 2)}
    led: list[Run] = []
    _by_service(client, example, script, 1)
    for number in range(pairs):
        git.append(_by_git(example, script, folder / f"clone{number}"))
        for width, runs in ours.items():
            runs.append(_by_service(client, example, script, width))
        led.append(_by_service(client, example, _telling(script), 1))
    print(f"git bisect run   : {_median(run.wall_s for run in git):.3f} s, {git[0].probes} probes, {pairs} runs")
    for name, runs in {"width 1": ours[1], "width 2": ours[2], "led    ": led}.items():
        ratio = _median(mine.wall_s / theirs.wall_s for mine, theirs in zip(runs, git, strict=True))
        wall = _median(run.wall_s for run in runs)
        print(f"firstbad {name} : {wall:.3f} s, {runs[0].probes} probes with both ends, {ratio:.2f} of git's time")
    gaps = [gap for run in ours[1] for gap in run.gaps_s]
    print(f"verdict to start : {_median(gaps) * 1000:.1f} ms median, {max(gaps) * 1000:.1f} ms at most, width 1")
    return 0


def _script(example: Example) -> str:
    """Looks for a line of source that the first bad commit removed, and that good has and bad has not."""
    changed = _git(example.path, "diff", "--unified=0", "--no-renames", f"{example.first_bad}^", example.first_bad)
    for part in changed.split("diff --git a/")[1:]:
        file = part.split(" ", 1)[0]
        removed = [line[1:].strip() for line in part.splitlines() if line.startswith("-") and line[1:2] == " "]
        good, bad = (_git(example.path, "show", f"{end}:{file}") for end in (example.good, example.bad))
        for line in removed:
            if len(line) > 12 and line in good and line not in bad:
                return f"grep -qF -- {_quoted(line)} {file}\n"
    raise AssertionError("the first bad commit removed no line that tells good from bad")


def _telling(script: str) -> str:
    """The same, printing the log of the example's server when it fails."""
    return f"{script.rstrip()} || {{ cat <<'LOG'\n{text_of('tinyserve.log').rstrip()}\nLOG\nexit 1; }}\n"


def _by_git(example: Example, script: str, clone: Path) -> Run:
    subprocess.run(["git", "clone", "-q", example.path, clone], check=True, env=QUIET)
    file = clone.with_suffix(".sh")
    file.write_text(f"set -eo pipefail\n{script}")
    began = time.perf_counter()
    _git(clone, "bisect", "start", example.bad, example.good)
    said = _git(clone, "bisect", "run", "bash", str(file))
    wall = time.perf_counter() - began
    assert f"{example.first_bad} is the first bad commit" in said, said
    return Run(wall, said.count("running "))


def _by_service(client: Client, example: Example, script: str, width: int) -> Run:
    document = {"project": "source", "repo": str(example.path), "good": example.good, "bad": example.bad}
    id = client.submit({**document, "script": script, "width": width}).id
    while (found := client.bisection(id)).live:
        time.sleep(0.02)
    assert found.answer is not None and [commit.sha for commit in found.answer.commits] == [example.first_bad], found
    probes = client.probes(id)
    wall = _at(found.ended_at) - _at(found.created_at)
    return Run(wall, len(probes), _gaps(probes) if width == 1 else ())


def _gaps(probes: Sequence[ProbeView]) -> tuple[float, ...]:
    """One probe at a time: from each verdict to the start of the next."""
    pairs = itertools.pairwise(probes)
    return tuple(_at(after.started_at) - _at(before.finished_at) for before, after in pairs)


def _git(where: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", where, *arguments], check=True, env=QUIET, capture_output=True, text=True
    ).stdout


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _at(time: datetime | None) -> float:
    assert time is not None
    return time.timestamp()


def _median(values) -> float:
    return statistics.median(values)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--pairs", type=int, default=9, help="how often each of the two runs")
    parser.add_argument("--port", type=int, default=8399)
    parser.add_argument("--quick", action="store_const", const=2, dest="pairs", help="two pairs only")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
