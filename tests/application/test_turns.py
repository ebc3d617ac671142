"""Who goes next: on both databases, from what is queued to what is sent."""

from __future__ import annotations

import random
import string
import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from service.application.flow import Flow
from service.application.submission import ResourcesForm
from service.application.turns import choose, rank_of, seats, submitter_of
from service.application.waiting import Chosen, Line
from service.domain.bisection import Gpu, Node, Probe
from service.domain.evidence import Fault
from service.domain.lifecycle import LIVE_PROBES, BisectionState, ProbeState
from service.domain.results import ProbeReport
from tests.application.conftest import World
from tests.application.test_races import at_once
from tests.callers import caller
from tests.fakes.workers import result

T0 = datetime(2026, 1, 1, tzinfo=UTC)
Waiting = dict[str, list[Chosen]]
TURNS = [f"{rank} {name}" for rank in (0, 1, 2) for name in "abcd"]


@st.composite
def lines(draw: st.DrawFn) -> Waiting:
    """By turn, the ages of what waits, the oldest first."""
    found: Waiting = {}
    for turn in draw(st.lists(st.sampled_from(TURNS), unique=True, min_size=1)):
        ages = sorted(draw(st.lists(st.integers(0, 50), min_size=1, max_size=6)))
        found[turn] = [Chosen(f"{turn}.{n}", 1, T0 + timedelta(minutes=age)) for n, age in enumerate(ages)]
    return found


def chosen(waiting: Waiting, out: dict[str, int], room: int) -> list[Chosen]:
    named = [Line(turn, several[0].asked_at) for turn, several in waiting.items()]
    return list(choose(named, out, room, lambda turn, most: waiting[turn][:most]))


def turn(one: Chosen) -> str:
    return one.id.partition(".")[0]


@given(lines(), st.integers(0, 30))
def test_with_equal_priorities_nobody_who_waits_has_more_than_one_slot_less_than_another(
    waiting: Waiting, room: int
) -> None:
    equal = {name: several for name, several in waiting.items() if rank_of(name) == 1}
    got = Counter(submitter_of(turn(one)) for one in chosen(equal, {}, room))
    left = {submitter_of(name) for name, several in equal.items() if len(several) > got[submitter_of(name)]}
    assert all(got[name] >= most - 1 for name in left for most in got.values())


@given(lines(), st.dictionaries(st.sampled_from(TURNS), st.integers(0, 5)), st.integers(0, 30))
def test_each_slot_goes_to_the_highest_priority_and_there_to_who_has_the_fewest(
    waiting: Waiting, out: dict[str, int], room: int
) -> None:
    taken = chosen(waiting, out, room)
    assert len(taken) == min(room, sum(map(len, waiting.values())))
    held: Counter[str] = Counter()
    for name, many in out.items():
        held[submitter_of(name)] += many
    left = {name: list(several) for name, several in waiting.items()}
    for one in taken:
        assert rank_of(turn(one)) == min(rank_of(name) for name, several in left.items() if several)
        others = [name for name, several in left.items() if several and rank_of(name) == rank_of(turn(one))]
        assert held[submitter_of(turn(one))] == min(held[submitter_of(name)] for name in others)
        assert left[turn(one)].pop(0) == one, "the oldest of a submitter"
        held[submitter_of(turn(one))] += 1


def node(world: World, slots: int, name: str = "n1", **change: object) -> None:
    found = Node(name, slots, world.clock.now(), "alive")
    world.flow.node(replace(found, **change), booted=False)  # type: ignore[arg-type]


def begin(world: World, by: str = "me", **change: object) -> str:
    id = world.submit(by, **change).id
    world.flow.prepare(world.workers.prepares.pop())
    return id


def probes(world: World, *states: ProbeState) -> list[Probe]:
    with world.flow.ports.bisections.transaction() as tx:
        return list(tx.probes_in(states or LIVE_PROBES))


def out(world: World) -> list[Probe]:
    return [probe for probe in probes(world) if probe.sent_at is not None]


def submitters(world: World) -> Counter[str]:
    return Counter(world.flow.bisection(probe.bisection_id).submitter for probe in out(world))


def test_no_more_is_sent_than_there_are_slots_and_a_reserve(world: World) -> None:
    node(world, 4)
    for _ in range(12):
        begin(world)
    assert len(world.workers.probes) == len(out(world)) == seats(4) == 6
    world.workers.run(world.flow, world.truth(13))
    assert len(world.workers.probes) == 6, "what ended made room for one"


def test_one_bisection_does_not_wait_for_another_submitters_many(world: World) -> None:
    node(world, 2)
    for _ in range(10):
        begin(world, by="ann", width=4)
    begin(world, by="bob")
    for _ in range(4):
        assert submitters(world)["bob"] <= 1
        world.workers.run(world.flow, world.truth(13))
    assert submitters(world)["bob"] == 1


def test_what_is_high_goes_before_all_that_is_normal_and_that_before_what_is_low(world: World) -> None:
    node(world, 0)
    first = [begin(world) for _ in range(2)]
    low, normal, high = (begin(world, priority=name) for name in ("low", "normal", "high"))
    order = []
    while world.workers.probes:
        order.append(world.workers.run(world.flow, world.truth(13)).bisection)
    assert set(order[:2]) == set(first), "they were sent before the others came"
    rest = order[2:]
    assert rest.index(high) == 0
    assert max(at for at, id in enumerate(rest) if id == high) < min(at for at, id in enumerate(rest) if id == low)
    assert rest.index(normal) < rest.index(low)


def test_a_priority_that_is_changed_counts_from_the_next_slot_on(world: World) -> None:
    node(world, 0)
    for _ in range(5):
        begin(world)
    last = begin(world)
    world.flow.prioritize(last, world.flow.bisection(last).priority.HIGH, caller("me"))
    world.workers.run(world.flow, world.truth(13))
    assert world.workers.probes[-1].bisection == last
    assert [event.data for event in world.flow.events(last) if event.kind == "priority"] == [
        {"priority": "high", "was": "normal", "by": "me"}
    ]


def test_builds_that_somebody_waits_for_are_sent_in_the_same_order(world: World) -> None:
    node(world, 0)
    for number in range(4):
        begin_build(world, number)
    begin_build(world, 9, priority="high")
    assert len(world.workers.builds) == 2
    world.workers.build(world.flow)
    assert dict(world.workers.builds[-1].env)["TRY"] == "9"


def test_a_build_stands_where_the_first_of_those_stands_who_want_it(world: World) -> None:
    node(world, 0)
    for number in range(5):
        begin_build(world, number)
    begin_build(world, 4, priority="high")
    world.workers.build(world.flow)
    assert dict(world.workers.builds[-1].env)["TRY"] == "4", "else what is high would wait for what is normal"


def begin_build(world: World, number: int, **change: object) -> str:
    id = world.submit(project="python", env={"TRY": str(number)}, **change).id
    world.workers.prepare(world.flow)
    return id


def test_a_delayed_attempt_waits_in_the_database(world: World) -> None:
    begin(world)
    fault = world.workers.fault(world.flow)
    assert world.workers.probes == []
    waiting = world.flow.probe(fault.probe)
    assert waiting.due_at is not None
    assert (waiting.state, waiting.sent_at) == (ProbeState.QUEUED, None)
    world.flow.sweep()
    assert world.workers.probes == []
    world.wait_for_retry()
    assert [(order.probe, order.attempt) for order in world.workers.probes] == [(fault.probe, 2)]


def test_what_waits_for_its_turn_is_not_taken_for_lost(world: World) -> None:
    node(world, 0)
    for _ in range(6):
        begin(world)
    world.workers.carries = False
    for _ in range(3):
        world.clock.pass_(31)
        node(world, 0)
        world.flow.sweep()
    sent = Counter(order.probe for order in world.workers.probes)
    assert sorted(sent.values())[-1] > 1, "what was sent is sent again"
    assert len(sent) == 2
    assert {probe.id for probe in probes(world) if probe.attempt > 1} == set(sent)
    assert not [probe for probe in probes(world) if probe.sent_at is None and probe.silent_since is not None]


def test_two_control_workers_send_nothing_twice_and_no_more_than_there_are_slots(world: World) -> None:
    node(world, 6)
    ids = [begin(world, by=f"user {number % 3}", width=3) for number in range(9)]
    flows = [world.flow, Flow(world.flow.ports)]
    truth, seen = world.truth(13), []
    while world.workers.probes:
        orders, world.workers.probes[:] = list(world.workers.probes), []
        seen += [(order.probe, order.attempt) for order in orders]
        assert len(out(world)) <= seats(6)
        told = [
            lambda flow=flow, order=order: flow.probed(result(order, truth(order.source.sha)))
            for order, flow in zip(orders, flows * len(orders), strict=False)
        ]
        at_once(*told, world.flow.sweep, flows[1].sweep)
    assert len(seen) == len(set(seen))
    assert {world.flow.bisection(id).state for id in ids} == {BisectionState.FOUND}


def test_what_is_found_while_another_thread_releases_is_released_too(world: World) -> None:
    """No wake-up is lost: the last result of all would leave what waits to the sweep."""
    node(world, 1)
    ids = [begin(world) for _ in range(6)]
    truth, lock = world.truth(13), threading.Lock()

    def work() -> None:
        while True:
            with lock:
                if not world.workers.probes:
                    return
                order = world.workers.probes.pop(0)
            world.flow.probed(result(order, truth(order.source.sha)))

    while world.workers.probes:
        at_once(work, work, work)
    assert {world.flow.bisection(id).state for id in ids} == {BisectionState.FOUND}


def test_a_probe_goes_to_the_node_with_its_labels_that_has_most_room(world: World) -> None:
    node(world, 1, "n1", labels=("nvlink",), models=("Qwen/Qwen3-0.6B",))
    node(world, 3, "n2", labels=("nvlink", "big"), models=("Qwen/Qwen3-0.6B",))
    node(world, 9, "n3", labels=("nvlink",))
    wanted = ResourcesForm(labels=("nvlink",), models=("Qwen/Qwen3-0.6B",))
    id = begin(world, width=8, resources=wanted)
    while world.flow.bisection(id).state is BisectionState.CHECKING_ENDS:
        world.workers.run(world.flow, world.truth(13))
    sent = Counter(order.target for order in world.workers.probes)
    assert set(sent) == {"n1", "n2"}
    assert sent["n1"] <= seats(1)
    assert sent["n2"] >= sent["n1"]
    world.workers.work(world.flow, world.truth(13))
    assert world.flow.bisection(id).state is BisectionState.FOUND


def test_a_probe_waits_for_a_node_with_its_label_and_says_so(world: World) -> None:
    node(world, 4, "n1")
    id = begin(world, resources=ResourcesForm(labels=("nvlink",)))
    assert world.workers.probes == []
    told = " ".join(world.flow.report(id).explanation)
    assert "waits for a node with the label nvlink" in told
    assert "n1 lacks nvlink" in told
    node(world, 1, "n2", labels=("nvlink",))
    world.flow.sweep()
    assert [order.target for order in world.workers.probes] == ["n2"]
    assert "waits" not in " ".join(world.flow.report(id).explanation)


def test_cards_on_a_node_without_the_label_are_none(world: World) -> None:
    card = (Gpu(0, "H100", "h100", 80 * 2**30),)
    node(world, 1, "n1", gpus=card)
    id = begin(world, resources=ResourcesForm(gpus=1, labels=("nvlink",)))
    assert world.flow.bisection(id).state is BisectionState.PREPARING
    told = [line for line in world.flow.report(id).explanation if "waits" in line]
    assert told == ["waits for a node with the label nvlink; n1 lacks nvlink"]
    node(world, 1, "n2", gpus=card, labels=("nvlink",))
    world.flow.prepare(id)
    assert [(order.target, order.gpu_class) for order in world.workers.probes] == [("n2", "h100")]


def cards(count: int) -> tuple[Gpu, ...]:
    return tuple(Gpu(index, "H100", "h100", 80 * 2**30) for index in range(count))


def test_who_wants_many_cards_with_a_label_keeps_nobody_waiting_who_wants_one(world: World) -> None:
    node(world, 4, "one", gpus=cards(1), labels=("l",))
    node(world, 4, "eight", gpus=cards(8), labels=("l",))
    begin(world, by="big", resources=ResourcesForm(gpus=8, labels=("l",)))
    node(world, 4, "eight", gpus=cards(8), labels=("l",), state="left")
    world.flow.sweep()
    world.workers.probes.clear()
    small = begin(world, by="small", resources=ResourcesForm(gpus=1, labels=("l",)))
    assert [(order.bisection, order.target) for order in world.workers.probes] == [(small, "one")]


def test_who_wants_many_cards_with_a_label_is_sent_to_a_node_that_has_them(world: World) -> None:
    node(world, 4, "eight", gpus=cards(8), labels=("l",))
    small, big = (begin(world, by=f"{n}", resources=ResourcesForm(gpus=n, labels=("l",))) for n in (1, 8))
    node(world, 4, "eight", gpus=cards(8), labels=("l",), state="left")
    world.workers.probes.clear()
    world.flow.sweep()
    node(world, 16, "one", gpus=cards(1), labels=("l",))
    node(world, 1, "eight", gpus=cards(8), labels=("l",))
    world.flow.sweep()
    assert {order.bisection: order.target for order in world.workers.probes} == {small: "one", big: "eight"}


def test_a_label_and_a_model_of_one_name_are_two_things(world: World) -> None:
    node(world, 4, "labelled", labels=("gpt2",), state="left")
    node(world, 4, "modelled", models=("gpt2",))
    begin(world, by="x", resources=ResourcesForm(labels=("gpt2",)))
    model = begin(world, by="y", resources=ResourcesForm(models=("gpt2",)))
    assert [(order.bisection, order.target) for order in world.workers.probes] == [(model, "modelled")]


def test_needs_and_submitters_of_any_length_are_kept_and_sent(world: World) -> None:
    """An index of PostgreSQL takes some 2,700 bytes, and compresses what it can: here it cannot."""
    dice = random.Random(1)
    long = ["".join(dice.choices(string.ascii_letters + string.digits, k=90)) for _ in range(60)]
    models = tuple("/".join(pair) for pair in zip(long[:20], long[20:40], strict=True))
    ids = [begin(world, by="".join(long), resources=ResourcesForm(models=models[:many])) for many in (19, 20)]
    assert len({probe.queue for probe in probes(world)}) == 2
    node(world, 4, "n1", models=models)
    world.flow.sweep()
    assert {order.bisection: order.target for order in world.workers.probes} == dict.fromkeys(ids, "n1")


def test_a_slot_of_a_node_with_a_label_that_becomes_free_goes_to_the_next(world: World) -> None:
    node(world, 0, "n1", labels=("l", "m"))
    ids = [begin(world, resources=ResourcesForm(labels=("l",))) for _ in range(3)]
    other = begin(world, by="other", resources=ResourcesForm(labels=("m",)))
    assert len(world.workers.probes) == 2
    world.flow.cancel(ids[0], "me")
    world.flow.cancel(ids[1], "me")
    assert {order.bisection for order in world.workers.probes[2:]} == {ids[2], other}


def test_what_was_sent_to_the_one_node_with_its_label_waits_for_another_when_that_one_leaves(world: World) -> None:
    node(world, 1, "n1", labels=("nvlink",))
    begin(world, resources=ResourcesForm(labels=("nvlink",)))
    order = world.workers.probes.pop()
    node(world, 1, "n1", labels=("nvlink",), state="left")
    node(world, 1, "n2")
    world.flow.sweep()
    assert world.workers.probes == []
    node(world, 1, "n3", labels=("nvlink",))
    world.flow.sweep()
    assert [(again.target, again.attempt) for again in world.workers.probes] == [("n3", order.attempt + 1)]


def test_what_ended_on_another_node_makes_room_in_the_queue_that_it_came_by(world: World) -> None:
    node(world, 0, "n1")
    node(world, 0, "n2")
    for _ in range(4):
        begin(world)
    assert len(world.workers.probes) == 2
    order = world.workers.start(world.flow)
    world.flow.probed(ProbeReport(order.probe, order.attempt, "n1", fault=Fault("disk-full", "full")))
    assert world.flow.probe(order.probe).queue == "node.n2"
    assert len(world.workers.probes) == 2
