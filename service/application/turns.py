"""Who goes next. What is queued waits in the database, and is sent when it is its turn and a slot is free for it.

The order: priorities first, builds ahead of need last; among equals the submitter with the fewest out; of one submitter
the oldest bisection. So nobody's hundred bisections keep another's single one waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime

from service.application import nodes, queues
from service.application.ports import Transaction
from service.application.waiting import Chosen, Line
from service.domain.bisection import Bisection, Message, Node
from service.domain.budget import Priority

#: What goes first has the lower digit. Builds ahead of need come after all that somebody waits for.
_RANK = {Priority.HIGH: 0, Priority.NORMAL: 1, Priority.LOW: 2}
_AHEAD = len(_RANK)
#: So many are out where no live node is known: workers may be there that have not said so yet.
UNKNOWN_SLOTS = 64
#: Beyond the slots, so that none waits for the control plane: a share of them, and at least so many.
RESERVE, LEAST_RESERVE = 4, 2
#: The first ones of a line, so many at most.
FirstIn = Callable[[str, int], Sequence[Chosen]]


def turn_of(bisection: Bisection, *, ahead: bool = False) -> str:
    """Where something stands in line: a digit, and the submitter, who shares with the others of that digit."""
    return f"{_RANK[bisection.priority] + (_AHEAD if ahead else 0)} {queues.short(bisection.submitter)}"


def rank_of(turn: str) -> int:
    return int(turn[:1] or _RANK[Priority.NORMAL])


def submitter_of(turn: str) -> str:
    return turn[2:]


def queue_of(bisection: Bisection) -> str:
    """Where its probes wait that any fitting node may take."""
    resources, wanted = bisection.request.recipe.resources, bisection.setup.gpu_class
    queue = queues.of_gpus(wanted) if wanted is not None else queues.CPU
    if not (resources.labels or resources.models):
        return queue
    return queues.picky(resources.labels, resources.models, resources.gpus if wanted is not None else 0, queue)


def seats(slots: int | None) -> int:
    """How many may be out at once."""
    return UNKNOWN_SLOTS if slots is None else slots + max(LEAST_RESERVE, slots // RESERVE)


def release(tx: Transaction, queue: str, now: datetime) -> int:
    """Sends what is next in this queue; how many. Nobody else releases it until the transaction ends, so one
    transaction is for one queue."""
    lines = tx.lines(queue, now)
    if not lines:
        return 0
    first_in: FirstIn = lambda turn, most: tx.first_in(queue, turn, now, most)  # noqa: E731
    if queue.startswith(queues.PICKY):
        return _release_picky(tx, queue, lines, first_in, now)
    tx.lock_queue(queue)
    out = tx.out(queue)
    room = seats(tx.slots(queue, now - nodes.SILENT)) - sum(out.values())
    chosen = tuple(choose(lines, out, room, first_in))
    _send(tx, queue, queue, chosen, now)
    return len(chosen)


def _release_picky(tx: Transaction, queue: str, lines: Sequence[Line], first_in: FirstIn, now: datetime) -> int:
    """Each to the node with most room, of those that have what it needs. It waits when there is none."""
    fit = _fit(tx, lines, first_in, now)
    out: Counter[str] = Counter()
    room = {}
    for node in fit:
        own = queues.of_node(node.name)
        tx.lock_queue(own)
        there = tx.out(own)
        out.update(there)
        room[own] = seats(node.slots) - sum(there.values())
    chosen = tuple(choose(lines, out, sum(max(free, 0) for free in room.values()), first_in))
    for one in chosen:
        roomiest = max(sorted(room), key=lambda own: room[own])
        room[roomiest] -= 1
        _send(tx, queue, roomiest, (one,), now)
    return len(chosen)


def _fit(tx: Transaction, lines: Sequence[Line], first_in: FirstIn, now: datetime) -> tuple[Node, ...]:
    """All that wait in one queue need the same: its name says what."""
    found = next((one for line in lines for one in first_in(line.turn, 1)), None)
    if found is None:
        return ()
    bisection = tx.bisection(tx.probe(found.id).bisection_id)
    there = nodes.running(tx.nodes(), now)
    return nodes.fitting(there, bisection.request.recipe.resources, bisection.setup.gpu_class)


def _send(tx: Transaction, queue: str, to: str, chosen: Collection[Chosen], now: datetime) -> None:
    if not chosen:
        return
    tx.send(queue, [one.id for one in chosen], now, to)
    kind = "build" if queue == queues.BUILD else "probe"
    for one in chosen:
        tx.post(Message(kind, f"{kind}:{one.id}:{one.attempt}", {"id": one.id, "attempt": one.attempt}), now)


def stop(tx: Transaction, kind: str, id: str, attempt: int, now: datetime) -> None:
    """Whatever still works on this attempt is to end."""
    payload: dict[str, object] = {"kind": kind, "id": id, "attempt": attempt}
    tx.post(Message("cancel", f"cancel:{kind}:{id}:{attempt}", payload), now)


def choose(lines: Sequence[Line], out: Mapping[str, int], room: int, first_in: FirstIn) -> Iterator[Chosen]:
    """As many as there is room for, in their order. `out`: by turn; what a submitter has out counts in every rank."""
    held: Counter[str] = Counter()
    for turn, many in out.items():
        held[submitter_of(turn)] += many
    for rank in sorted({rank_of(line.turn) for line in lines}):
        waiting = {line.turn: line.asked_at for line in lines if rank_of(line.turn) == rank}
        read: dict[str, list[Chosen]] = {}
        while room > 0 and waiting:
            turn = min(waiting, key=lambda one: (held[submitter_of(one)], waiting[one], one))
            left = read[turn] if turn in read else read.setdefault(turn, list(first_in(turn, room)))
            if left:
                yield left.pop(0)
                held[submitter_of(turn)] += 1
                room -= 1
            if left:
                waiting[turn] = left[0].asked_at
            else:
                del waiting[turn]
