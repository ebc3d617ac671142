"""Commands of an operator: the nodes, and verdicts derived anew."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from service.cli import complete, isolation, screen, tell
from service.cli.connect import connect
from service.cli.options import DEFAULT_URL, HOME, Home, Id, Json, Url
from service.cli.show import probe_table
from service.domain.size import told
from service.doors.api.views import NodeView

Return = Annotated[
    str | None,
    typer.Option(
        "--return", metavar="NAME", autocompletion=complete.nodes, help="Give a node that was taken out probes."
    ),
]


def nodes(back: Return = None, as_json: Json = False, url: Url = DEFAULT_URL) -> None:
    """List the machines that build and run, their GPUs, and why one was taken out."""
    with connect(url) as client:
        found = (client.return_node(back),) if back is not None else client.nodes()
    if as_json:
        tell.as_program(tell.data(found[0]) if back is not None else [tell.data(node) for node in found])
        return
    out = screen.console()
    if back is not None:
        out.print(Text(f"{screen.clean(found[0].name)} gets probes again."), soft_wrap=True)
    elif found:
        screen.put(out, _table(found))
        for line in (*isolation.told(found, "docker"), *isolation.told(found, "process"), *isolation.broken(found)):
            out.print(Text(f"note: {line}"), soft_wrap=True)
    else:
        screen.console(stderr=True).print("No node has reported yet; docs/worker.md tells how to add one.")


def doctor(home: Home = HOME, as_json: Json = False) -> None:
    """Look over this machine as a node, and say what to do.

    With the settings of the worker of the `firstbad up` that runs with this home, or with those of the environment.
    Exit status 0 when it can work, warnings or not, and 1 when it cannot. It changes nothing.
    """
    # A process of its own: the service knows nothing of the worker but what passes between them.
    from service import running, wiring

    folder = home.expanduser().absolute()
    given = running.settings(folder)
    which = (
        f"The node of the `firstbad up` that runs with {folder}:"
        if given is not None
        else f"No `firstbad up` runs with {folder} (--home names another): a node with the settings of the environment:"
    )
    screen.console(stderr=True).print(Text(which), soft_wrap=True)
    command = [sys.executable, "-m", "worker", "doctor", *(["--json"] if as_json else [])]
    environment = {**wiring.environment(), **(given or {})}
    raise typer.Exit(subprocess.run(command, env=environment, check=False).returncode)


def judge(id: Id, as_json: Json = False, url: Url = DEFAULT_URL) -> None:
    """Judge the runs of a bisection again by today's rules, without running anything for it."""
    with connect(url) as client:
        found = client.find(id)
        changed = client.judge_again(found)
    if as_json:
        tell.as_program([tell.data(probe) for probe in changed])
        return
    out = screen.console()
    if not changed:
        out.print(f"No verdict of {found} has changed.")
        return
    out.print(f"{screen.count(len(changed), 'verdict')} of {found} changed; it goes on if its answer does not stand.")
    screen.put(out, probe_table(changed))


def _table(found: Sequence[NodeView]) -> Table:
    """Labels and models where any node has some: few services have either."""
    more = [name for name in ("labels", "models") if any(getattr(node, name) for node in found)]
    table = screen.columns("NODE", "STATE", "SEEN", "SLOTS", "ROLES", "GPUS", *map(str.upper, more), "TAKEN OUT")
    for node in found:
        state = screen.styled("fault" if node.out else node.state)
        state.plain = "out" if node.out else node.state
        roles, seen = ", ".join(node.roles), screen.ago(node.seen_at)
        has = (screen.clean(", ".join(getattr(node, name))) for name in more)
        name, slots = screen.clean(node.name), str(node.slots)
        table.add_row(name, state, seen, slots, roles, _gpus(node), *has, screen.first_line(node.out))
    return table


def _gpus(node: NodeView) -> str:
    """Those that are alike counted: "8 × NVIDIA H100 80GB HBM3, 79 GiB"."""
    alike = Counter((gpu.model, gpu.memory_bytes) for gpu in node.gpus)
    return "; ".join(f"{count} × {screen.clean(model)}, {_memory(size)}" for (model, size), count in alike.items())


def _memory(size: int) -> str:
    return told(size >> 30 << 30) if size >= 1 << 30 else told(size)
