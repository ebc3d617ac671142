"""`make chaos`: bisections of the example under seeded faults, each run on a stack of its own; see docs/chaos.md."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from time import monotonic
from typing import Any

import psutil

from tests.chaos import material
from tests.chaos.plan import FAULTS, QUICK, planned

RUNS = 100
#: A run waits for most of its time.
AT_ONCE = 4
#: Longer than any run can take by its own limits.
LIMIT_S = 900.0
#: Complaints of one run that are printed.
MOST = 20
ROOT = Path(__file__).parents[2]


def main() -> int:
    asked = _asked()
    seeds = range(asked.seed, asked.seed + (asked.runs or (len(QUICK) if asked.quick else RUNS)))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans of a run that dies fall to this process
    folder = Path(tempfile.mkdtemp(prefix="firstbad-chaos-"))
    folder.chmod(0o755)
    results: list[dict[str, Any]] = []
    began = monotonic()
    try:
        with_engine = any(planned(seed, asked.only, asked.quick).sandbox == "docker" for seed in seeds)
        (folder / "material").mkdir()
        made = material.make(folder / "material", engine=with_engine)
        _run_all(made, folder, seeds, asked, results)
    finally:
        _clear(folder, keep=[folder / f"run-{result['seed']}" for result in results if result["wrong"]])
        _say(f"{_table(results)}\n{len(results)} of {len(seeds)} runs in {(monotonic() - began) / 60:.1f} minutes")
    wrong = [result for result in results if result["wrong"]]
    if wrong:
        _say(f"{len(wrong)} runs are not right: what is wrong with each is said below its line")
    return 1 if wrong else 0


def _run_all(
    made: material.Material, folder: Path, seeds: range, asked: argparse.Namespace, results: list[dict[str, Any]]
) -> None:
    """Says what came of each run as soon as it is over."""
    with ThreadPoolExecutor(asked.at_once) as pool:
        waiting = [pool.submit(_one, made, folder / f"run-{seed}", seed, asked) for seed in seeds]
        try:
            for number, done in enumerate(as_completed(waiting), 1):
                results.append(done.result())
                _say(f"{number:3}/{len(seeds)}  {_line(results[-1])}")
                if results[-1]["wrong"]:
                    _say(_complaint(results[-1], folder, asked))
        except BaseException:
            # Told to end: those that wait are not begun, those that run are not waited for.
            pool.shutdown(wait=False, cancel_futures=True)
            _kill_all()
            raise


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--runs", type=int, help=f"how many; {RUNS} without it")
    parser.add_argument("--seed", type=int, default=0, help="of the first run; each one after it has the next")
    parser.add_argument("--only", choices=sorted(FAULTS), help="this fault alone, in every run")
    parser.add_argument("--quick", action="store_true", help="each kind of fault once")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="runs at a time")
    return parser.parse_args()


def _one(made: material.Material, folder: Path, seed: int, asked: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.chaos.one", str(made.folder), str(folder), str(seed)]
    command += [*([asked.only] if asked.only else []), *(["--quick"] if asked.quick else [])]
    with folder.with_suffix(".err").open("wb") as err:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=err, text=True)
    try:
        out, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out = process.communicate()[0]
    try:
        return dict(json.loads(out.splitlines()[-1]))
    except (IndexError, ValueError):
        said = folder.with_suffix(".err").read_text()[-2000:]
        plan = planned(seed, asked.only, asked.quick)
        return {
            "seed": seed,
            "plan": plan.told(),
            "seconds": 0.0,
            "faults": [],
            "missed": [],
            "outcome": "suite",
            "wrong": [f"the run ended with status {process.returncode} and no result: {said}"],
        }


def _line(result: dict[str, Any]) -> str:
    faults = ", ".join(_fault(*fault) for fault in sorted(result["faults"], key=lambda fault: fault[1]))
    missed = f" (too late: {', '.join(result['missed'])})" if result["missed"] else ""
    return (
        f"seed {result['seed']}  {result['outcome']} in {result['seconds']:.0f} s  [{result['plan']}]  {faults}{missed}"
    )


def _fault(name: str, since_s: float, until_s: float, how: str) -> str:
    when = f"{since_s:.1f}" if until_s - since_s < 1 else f"{since_s:.1f}-{until_s:.1f}"
    return f"{name} at {when} s{f' ({how})' if how else ''}"


def _table(results: list[dict[str, Any]]) -> str:
    outcomes = sorted({result["outcome"] for result in results} | {"right"}, key=lambda name: (name != "right", name))
    done: Counter[str] = Counter()
    runs: Counter[tuple[str, str]] = Counter()
    for result in results:
        names = [fault[0] for fault in result["faults"]]
        done.update(names)
        runs.update((name, result["outcome"]) for name in set(names))
    head = f"\n{'fault':12}{'times':>7}" + "".join(f"{outcome:>8}" for outcome in outcomes)
    lines = [
        f"{name:12}{done[name]:7}" + "".join(f"{runs[name, outcome]:8}" for outcome in outcomes) for name in FAULTS
    ]
    total = Counter(result["outcome"] for result in results)
    last = f"{'all runs':12}{sum(done.values()):7}" + "".join(f"{total[outcome]:8}" for outcome in outcomes)
    return "\n".join([head, *lines, last])


def _complaint(result: dict[str, Any], folder: Path, asked: argparse.Namespace) -> str:
    again = f"python -m tests.chaos --runs 1 --seed {result['seed']}"
    again += f" --only {asked.only}" if asked.only else ""
    again += " --quick" if asked.quick else ""
    lines = [*result["wrong"][:MOST], f"logs and database: {folder}/run-{result['seed']}", f"again: {again}"]
    return "\n".join(f"         {line}" for told in lines for line in told.splitlines())


def _kill_all() -> None:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def _clear(folder: Path, keep: list[Path]) -> None:
    """Ends and removes whatever a run left that was ended by force, and the folders of those that were right."""
    _kill_all()
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in reversed([mount for mount in mounts if mount.startswith(f"{folder}/")]):
        subprocess.run(["umount", "--lazy", mount], check=False)
    kept = {str(path) for path in keep}
    for path in folder.iterdir():
        if str(path) not in kept and str(path.with_suffix("")) not in kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


if __name__ == "__main__":
    sys.exit(main())
