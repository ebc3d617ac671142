"""The search looks first where the failure points: on the example, with the signature that its server's log has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.generate import Example, generate
from examples.request import CHECK, SERVE
from service.adapters import recipes
from service.adapters.git_history import GitHistory
from service.application.cases import Wanted
from service.application.clues import clues_of
from service.application.keys import Lead, Scope, scope_of
from service.application.plan import step
from service.application.submission import Submission
from service.domain.bisection import Bisection, Probe, Purpose, Reproduction, Request, Serve
from service.domain.evidence import Frame, Outcome, Signature, Verdict
from service.domain.lifecycle import BisectionState, ProbeState
from service.domain.metric import Better, Metric
from service.domain.recipe import Recipe, SandboxKind
from service.search import Range
from tests.application.conftest import World
from tests.callers import caller
from tests.fakes.workers import result
from tests.observe.logs import found_in

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLAIN_BISECTION = 8
INNERMOST = "tinyserve/v1/attention/backends/linear_attn.py"


def printed() -> Signature:
    """As the worker sends it, in the service's words."""
    found = found_in("tinyserve.log")
    frames, outer = (tuple(Frame(frame.file, frame.function) for frame in some) for some in (found.frames, found.outer))
    return Signature(str(found.kind), found.type, found.message, frames, outer, found.line, found.said)


SEEN = printed()


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return generate(tmp_path_factory.mktemp("example") / "tinyserve")


@dataclass
class Bench:
    """Bisections of the example by workers whose bad runs show a signature."""

    world: World
    example: Example

    def begin(self, **change: object) -> str:
        plain = Submission(
            good=(self.example.good,),
            bad=self.example.bad,
            repo=str(self.example.path),
            project="source",
            script="run tiny/next-80b --speculative-config",
        )
        return self.world.flow.submit(replace(plain, **change), caller("me")).id

    def answer(self, order_at: int, first_bad: int, signature: Signature | None) -> None:
        """The probe at this place of the queue; the commits from position `first_bad` on are bad."""
        workers, flow = self.world.workers, self.world.flow
        workers.probes.insert(0, workers.probes.pop(order_at))
        order = workers.start(flow)
        bad = self.position(order.source.sha) >= first_bad
        report = result(order, int(bad))
        assert report.outcome is not None
        shown = {"signature": signature, "failure_seen": order.reproduction.failure} if bad else {}
        flow.probed(replace(report, outcome=replace(report.outcome, **shown)))  # type: ignore[arg-type]

    def finish(self, id: str, first_bad: int, signature: Signature | None) -> int:
        """The probes that the search took besides those of the ends."""
        while self.world.workers.prepares:
            self.world.workers.prepare(self.world.flow)
        while self.world.workers.probes:
            self.answer(0, first_bad, signature)
        answer = self.world.flow.bisection(id).answer
        assert answer is not None
        assert answer.shas == (self.example.commits[first_bad].sha,)
        return sum(probe.purpose is Purpose.SEARCH for probe in self.world.flow.probes(id))

    def bisect(self, first_bad: int, signature: Signature | None, **change: object) -> int:
        return self.finish(self.begin(**change), first_bad, signature)

    def position(self, sha: str) -> int:
        return next(commit.number for commit in self.example.commits if commit.sha == sha)


@pytest.fixture
def bench(world: World, example: Example) -> Bench:
    return Bench(world, example)


def first_bad_of(example: Example) -> int:
    return next(commit.number for commit in example.commits if commit.sha == example.first_bad)


def test_a_traceback_leads_to_the_commit_in_at_most_half_the_probes_of_git_bisect(bench: Bench) -> None:
    assert bench.bisect(first_bad_of(bench.example), SEEN) <= PLAIN_BISECTION / 2
    explanation = bench.world.flow.report(bench.world.flow.bisections()[0].id).explanation
    [told] = [line for line in explanation if "looked first" in line]
    assert told.startswith(f"looked first where the traceback points: {INNERMOST}")


def test_without_anything_that_says_what_failed_it_takes_what_git_bisect_takes(bench: Bench) -> None:
    assert bench.bisect(first_bad_of(bench.example), None) == PLAIN_BISECTION
    explanation = bench.world.flow.report(bench.world.flow.bisections()[0].id).explanation
    assert not [line for line in explanation if "looked first" in line]


def test_the_text_that_a_user_gives_leads_too(bench: Bench) -> None:
    text = "Linear attention supports graph capture of uniform decode batches only"
    assert bench.bisect(first_bad_of(bench.example), replace(SEEN, frames=(), outer=()), failure=text) < PLAIN_BISECTION


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_traceback_that_points_elsewhere_costs_one_probe_at_most(bench: Bench) -> None:
    taken = {first_bad: bench.bisect(first_bad, SEEN) for first_bad in range(1, 250, 19)}
    assert max(taken.values()) <= PLAIN_BISECTION + 1, taken


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("last", ["bad end", "good end"])
def test_the_first_probe_of_the_search_is_led_whichever_end_answers_last(bench: Bench, last: str) -> None:
    first_bad = first_bad_of(bench.example)
    bench.begin(width=2)
    bench.world.workers.prepare(bench.world.flow)
    ends = [order.source.sha for order in bench.world.workers.probes]
    assert ends == [bench.example.bad, bench.example.good]
    bench.answer(int(last == "bad end"), first_bad, SEEN)
    bench.answer(0, first_bad, SEEN)
    positions = [bench.position(order.source.sha) for order in bench.world.workers.probes]
    assert first_bad in positions or first_bad - 1 in positions


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_same_probes_are_chosen_after_a_restart(bench: Bench, tmp_path: Path) -> None:
    first_bad = first_bad_of(bench.example)
    bench.bisect(first_bad, SEEN)
    before = [order.source.sha for order in bench.world.workers.seen]
    bench.world.workers.seen.clear()
    id = bench.begin()
    bench.world.workers.prepare(bench.world.flow)
    while bench.world.workers.probes:
        ports = replace(bench.world.flow.ports, history=GitHistory(tmp_path / "mirrors", allow_file=True))
        bench = replace(bench, world=replace(bench.world, flow=replace(bench.world.flow, ports=ports)))
        bench.answer(0, first_bad, SEEN)
    assert bench.world.flow.bisection(id).state is BisectionState.FOUND
    assert [order.source.sha for order in bench.world.workers.seen] == before


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_flaky_failure_is_searched_by_its_runs_alone(bench: Bench) -> None:
    first_bad = first_bad_of(bench.example)
    led, plain = (bench.bisect(first_bad, signature, flaky=True) for signature in (SEEN, None))
    assert led == plain


def request_of(reproduction: Reproduction, **change: object) -> Request:
    return replace(
        Request("r", ("v1",), "main", reproduction, Recipe("source"), SandboxKind.PROCESS),
        **change,  # type: ignore[arg-type]
    )


SERVED = Reproduction(serve=Serve(SERVE), check=CHECK)
WANTED = Wanted(SEEN, "start")


def test_clues_are_the_frames_the_words_that_were_printed_and_the_options() -> None:
    clues = clues_of(request_of(SERVED), WANTED)
    assert clues is not None
    assert clues.files == (INNERMOST, "tinyserve/v1/worker/model_runner.py")
    assert clues.outer == ("tinyserve/v1/worker/worker.py", "tinyserve/v1/executor/worker_proc.py")
    assert clues.functions[:2] == ("build_for_graph_capture", "_dummy_run")
    for word in ("AssertionError", "uniform", "speculative_config", "num_speculative_tokens", "tensor_parallel_size"):
        assert word in clues.words
    assert not [word for word in clues.words if "FIRSTBAD" in word]


def test_of_a_script_the_options_and_names_count_and_not_its_plumbing() -> None:
    script = 'set -e\ncurl -s localhost | tee out.log\npython -m engine --max-num-seqs 4 --config "{\\"top_k\\": 1}"\n'
    clues = clues_of(request_of(Reproduction(script=script)), Wanted(Signature("k", "E", "boom"), "script"))
    assert clues is not None
    assert {"max_num_seqs", "config", "top_k"} <= set(clues.words)
    assert {"curl", "tee", "set", "python"}.isdisjoint(clues.words)


def test_there_are_no_clues_where_nothing_says_what_fails_or_an_answer_must_stand_on_numbers() -> None:
    metric = Metric(Better.HIGHER, pattern="x")
    assert clues_of(request_of(SERVED), None) is None
    assert clues_of(request_of(SERVED), Wanted(None, "check")) is None
    assert clues_of(request_of(SERVED, metric=metric), WANTED) is None
    assert clues_of(request_of(SERVED, flaky=True), WANTED) is None
    assert clues_of(request_of(replace(SERVED, failure="boom")), Wanted(None, "check")) is not None


def test_a_clue_of_a_script_as_long_as_a_service_takes_stays_short() -> None:
    script = " ".join(f"--option-{number} some_name_{number}" for number in range(20_000))
    clues = clues_of(request_of(Reproduction(script=script)), WANTED)
    assert clues is not None
    assert len(clues.words) < 1000


def test_a_failure_that_no_commit_touches_leads_nowhere(example: Example, tmp_path: Path) -> None:
    history = GitHistory(tmp_path / "mirrors", allow_file=True)
    history.refresh(str(example.path))
    request = replace(request_of(Reproduction(script="true")), repo=str(example.path), recipe=recipes.load()["source"])
    found = Bisection("b", BisectionState.SEARCHING, request, "me", NOW, NOW, (example.good,), example.bad)
    nowhere = Signature("k", "Xyzzy", "plugh", (Frame("elsewhere/nothing_of_the_kind.py"),))
    scope = scope_of(history, found, clues_of(request, Wanted(nowhere, "script")))
    assert scope.lead.clues is not None
    assert scope.lead.prior is None


priors = st.dictionaries(st.integers(1, 40), st.floats(0, 1e6), max_size=12)
skips = st.sets(st.integers(1, 39), max_size=6)


@settings(max_examples=150, deadline=None)
@given(st.integers(2, 40), st.data(), priors, skips, st.integers(1, 4))
def test_whatever_the_prior_the_answer_is_the_same_as_without(
    count: int, data: st.DataObject, prior: dict[int, float], skipped: set[int], width: int
) -> None:
    first_bad = data.draw(st.integers(1, count))
    by_sha = {name(number): weight for number, weight in prior.items()}

    def truth(number: int) -> Verdict:
        if number in skipped and number != count:
            return Verdict.SKIP
        return Verdict.BAD if number >= first_bad else Verdict.GOOD

    plain, led = (carried(count, truth, width, one) for one in (None, by_sha))
    assert led == plain


def name(number: int) -> str:
    return f"{number:040x}"


def carried(
    count: int, truth: Callable[[int], Verdict], width: int, prior: Mapping[str, float] | None
) -> tuple[BisectionState, frozenset[str]]:
    """Where a bisection of commits 1 to `count` ends, and with which answer."""
    scope = Scope(Range.of([name(number) for number in range(1, count + 1)]), lead=Lead(prior=prior))
    request = request_of(Reproduction("x"), width=width)
    found = Bisection("b", BisectionState.CHECKING_ENDS, request, "me", NOW, NOW, (name(0),), name(count), count, count)
    probes: list[Probe] = []
    for _ in range(200):
        taken = step(found, probes, scope)
        gone = {probe.id for probe in taken.worthless}
        probes = [replace(p, state=ProbeState.CANCELLED) if p.id in gone else p for p in probes]
        for wanted in taken.wanted:
            id = str(len(probes))
            probes.append(Probe(id, "b", len(probes), wanted.sha, 1, wanted.purpose, ProbeState.RUNNING, NOW))
        if taken.state in (BisectionState.CONFIRMING, BisectionState.SUSPECTS):
            assert taken.answer is not None
            return taken.state, frozenset(taken.answer.shas)
        assert taken.problem is None, taken.problem
        if taken.state is not None:
            found = replace(found, state=taken.state)
            continue
        live = next(place for place, probe in enumerate(probes) if probe.state is ProbeState.RUNNING)
        verdict = truth(int(probes[live].sha, 16))
        probes[live] = replace(probes[live], state=ProbeState.JUDGED, verdict=verdict, outcome=Outcome("script"))
    raise AssertionError("a search without end")
