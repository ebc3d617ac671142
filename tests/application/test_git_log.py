"""What firstbad found in the words of git bisect log: real git replays it, and names the same commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.domain.evidence import Verdict
from service.domain.lifecycle import BisectionState
from tests.application import test_measuring as measuring
from tests.application.conftest import World
from tests.application.test_override import ANN, begin, named, say, searched
from tests.repositories import QUIET, NewCommit, build_repository


def replayed(world: World, id: str, repository: Path) -> str:
    """What git says in a clone, where the log is replayed; it must take it."""
    clone = repository.parent / f"clone-{id}-{len(list(repository.parent.iterdir()))}"
    log = clone.with_suffix(".log")
    log.write_text(world.flow.git_log(id))
    subprocess.run(["git", "clone", "-q", str(repository), str(clone)], check=True, env=QUIET, capture_output=True)
    done = subprocess.run(["git", "bisect", "replay", str(log)], cwd=clone, env=QUIET, capture_output=True, text=True)
    assert done.returncode in (0, 2), f"{done.stdout}\n{done.stderr}\n{log.read_text()}"
    return done.stdout + done.stderr


def names(said: str) -> str:
    return next((line.split()[0] for line in said.splitlines() if line.endswith("is the first bad commit")), said)


only_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.mark.parametrize(("width", "first_bad"), [(1, 1), (1, 13), (3, 19), (4, 7)])
@only_sqlite
def test_a_search_on_a_line_is_replayed(world: World, width: int, first_bad: int) -> None:
    id = searched(world, first_bad, width=width)
    assert names(replayed(world, id, world.repository)) == world.shas[first_bad]


@only_sqlite
def test_what_was_skipped_is_skipped_by_git(world: World) -> None:
    id = begin(world)
    world.workers.work(world.flow, world.truth(13, at_11=125, at_10=125))
    assert names(replayed(world, id, world.repository)) == world.shas[13]
    id = begin(world)
    world.workers.work(world.flow, world.truth(13, at_11=125, at_12=125))
    assert world.flow.bisection(id).state is BisectionState.SUSPECTS
    said = replayed(world, id, world.repository)
    assert "only 'skip'ped commits left" in said
    assert all(sha in said for sha in named(world.flow.bisection(id)))


@only_sqlite
def test_what_was_said_by_hand_goes_before_what_was_run(world: World) -> None:
    id = searched(world)
    say(world, id, 13, Verdict.GOOD)
    say(world, id, 14, Verdict.SKIP)
    say(world, id, 15, Verdict.GOOD)
    world.workers.work(world.flow, world.truth(16))
    assert names(replayed(world, id, world.repository)) == named(world.flow.bisection(id))[0]


@only_sqlite
def test_what_cannot_all_be_true_is_no_error_for_git(world: World) -> None:
    id = searched(world)
    world.flow.reprobe(id, world.shas[13], "to be sure", ANN)
    world.workers.work(world.flow, lambda sha: 0)
    assert world.flow.bisection(id).state is BisectionState.SUSPECTS
    replayed(world, id, world.repository)


@only_sqlite
def test_of_a_flaky_failure_and_of_a_number_git_is_told_what_all_runs_say(world: World) -> None:
    id = searched(world, flaky=True)
    assert names(replayed(world, id, world.repository)) == world.shas[13]
    id = measuring.begin(world)
    measuring.run(world, measuring.dropping(13))
    assert names(replayed(world, id, world.repository)) == world.shas[13]


@only_sqlite
def test_before_anything_is_known_it_is_a_comment(world: World) -> None:
    log = world.flow.git_log(world.submit().id)
    assert all(line.startswith("#") for line in log.splitlines())


@only_sqlite
def test_a_subject_cannot_be_a_command(world: World, tmp_path: Path) -> None:
    path = tmp_path / "told"
    told = [NewCommit("a"), NewCommit("x\rgit bisect bad HEAD\u2028git bisect reset"), NewCommit("c")]
    shas = build_repository(path, told)
    id = begin(world, repo=str(path), good=(shas[0],), bad=shas[2])
    world.workers.work(world.flow, lambda sha: int(sha != shas[0]))
    assert names(replayed(world, id, path)) == shas[1]
    assert sum(not line.startswith("#") for line in world.flow.git_log(id).splitlines()) == 3


GRAPHS = st.lists(st.integers(0, 99), min_size=6, max_size=14)


@only_sqlite
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(picks=GRAPHS, data=st.data())
def test_on_any_graph_with_several_good_ends_git_names_the_same(
    world: World, picks: list[int], data: st.DataObject
) -> None:
    """Each commit descends from the one before, or from two; what holds the fault is one of them."""
    path = world.repository.parent / f"graph-{len(list(world.repository.parent.iterdir()))}"
    commits, tips = [NewCommit("root"), NewCommit("second good", parents=(0,))], {1}
    for index, pick in enumerate(picks, start=2):
        parents = {pick % index, (pick // 7) % index} if pick % 3 else {index - 1}
        commits.append(NewCommit(f"c{index}", parents=tuple(sorted(parents)), files={"n": str(index)}))
        tips = (tips - parents) | {index}
    commits.append(NewCommit("bad", parents=tuple(sorted(tips)), files={"n": "bad"}))
    shas = build_repository(path, commits)
    above = {0: set[int]()}
    for index, commit in enumerate(commits[1:], start=1):
        parents = commit.parents or (index - 1,)
        above[index] = {index, *(one for parent in parents for one in above[parent])}
    culprit = data.draw(st.integers(2, len(shas) - 1))
    broken = {shas[index] for index, held in above.items() if culprit in held}
    goods = (shas[0], shas[1]) if culprit not in above[1] else (shas[0],)
    id = begin(world, repo=str(path), good=goods, bad=shas[-1], width=data.draw(st.integers(1, 3)))
    world.workers.work(world.flow, lambda sha: int(sha in broken))
    assert named(world.flow.bisection(id)) == (shas[culprit],)
    assert names(replayed(world, id, path)) == shas[culprit]
