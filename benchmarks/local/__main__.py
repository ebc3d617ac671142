"""`git bisect run` and `firstbad run` on the same history, with a script that takes its time: `make bench-run`."""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from tests.repositories import QUIET, NewCommit, build_repository, git

FIRSTBAD = Path(sys.executable).with_name("firstbad")
WIDTHS = (1, 2, 4)


@dataclass(frozen=True)
class Measured:
    """`probes`: runs of the script that ended."""

    seconds: float
    probes: int
    answer: str


@dataclass(frozen=True)
class Bench:
    folder: Path
    shas: tuple[str, ...]

    @property
    def repository(self) -> Path:
        return self.folder / "repository"

    def script(self, first_bad: int, sleep_s: float) -> Path:
        path, counted = self.folder / "script", self.folder / "counted"
        counted.write_text("")
        path.write_text(f"#!/bin/sh\nsleep {sleep_s}\necho x >>{counted}\ntest $(cat number) -lt {first_bad}\n")
        path.chmod(0o755)
        return path

    def measured(self, command: Sequence[object]) -> Measured:
        began = perf_counter()
        done = subprocess.run([*map(str, command)], cwd=self.repository, env=QUIET, capture_output=True, text=True)
        seconds = perf_counter() - began
        lines = [line for line in done.stdout.splitlines() if line.endswith("is the first bad commit")]
        if not lines:
            raise SystemExit(f"{command[0]}: {done.stdout}{done.stderr}")
        return Measured(seconds, len((self.folder / "counted").read_text().split()), lines[0].split()[0])

    def git(self, script: Path) -> Measured:
        git(self.repository, "bisect", "start", self.shas[-1], self.shas[0])
        try:
            return self.measured(["git", "bisect", "run", script])
        finally:
            git(self.repository, "bisect", "reset")

    def firstbad(self, script: Path, width: int) -> Measured:
        home = ("--home", self.folder / "home")
        return self.measured([FIRSTBAD, "run", "-j", width, *home, "--good", self.shas[0], "--", script])


def made(folder: Path, commits: int, files: int) -> Bench:
    source = {f"src/module{n % 50}/file{n}.py": f"VALUE = {n}\n" * 20 for n in range(files)}
    history = [NewCommit(f"change {n}", files={"number": f"{n}\n", **({} if n else source)}) for n in range(commits)]
    shas = build_repository(folder / "repository", history)
    git(folder / "repository", "checkout", "--quiet", "--force", "main")
    return Bench(folder, shas)


def measurements(bench: Bench, rounds: int, sleep_s: float) -> Iterator[dict[str, Measured]]:
    chosen = random.Random(7)
    for _ in range(rounds):
        truth = chosen.randrange(1, len(bench.shas))
        found = {"git bisect run": bench.git(bench.script(truth, sleep_s))}
        for width in WIDTHS:
            found[f"firstbad run -j{width}"] = bench.firstbad(bench.script(truth, sleep_s), width)
        assert {one.answer for one in found.values()} == {bench.shas[truth]}
        yield found


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench-run", description=__doc__)
    parser.add_argument("--commits", type=int, default=250)
    parser.add_argument("--files", type=int, default=2000, help="in the tree")
    parser.add_argument("--sleep", type=float, default=2.0, help="seconds that the script takes")
    parser.add_argument("--rounds", type=int, default=5, help="first bad commits, each found in every way")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = made(Path(folder), given.commits, given.files)
        found = [*measurements(bench, given.rounds, given.sleep)]
    print(f"{given.commits} commits, {given.files} files, a script of {given.sleep} s, {os.cpu_count()} cores")
    print(f"mean of {given.rounds} first bad commits; firstbad tries both ends as well, which git takes on trust")
    print(f"{'':20} {'wall s':>8} {'of git':>7} {'runs':>6} {'beside the script, s each':>26}")
    base = statistics.mean(row["git bisect run"].seconds for row in found)
    for name in found[0]:
        seconds = statistics.mean(row[name].seconds for row in found)
        probes = statistics.mean(row[name].probes for row in found)
        alone = name in ("git bisect run", "firstbad run -j1")
        beside = f"{seconds / probes - given.sleep:.2f}" if alone else ""
        print(f"{name:20} {seconds:8.1f} {seconds / base:7.2f} {probes:6.1f} {beside:>26}")


if __name__ == "__main__":
    main()
