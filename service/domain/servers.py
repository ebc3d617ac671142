"""Commands that start a server and stay in the foreground, as far as a pasted script is to be taken apart by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Server:
    """`commands`: how each begins, word by word; a program is known under any path, and `python` in any version.

    `port`: where it listens unless one of `port_options` or, as in "host:port", `port_variables` says otherwise;
    `port_is_an_argument`: the first word behind the command that is no option does. It is ready when `ready_http`
    answers 200, or when it prints `ready_log`. `doubts`: options and variables with which it may not do that, and for
    each the values with which it does.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    port: int
    port_options: tuple[str, ...] = ()
    port_variables: tuple[str, ...] = ()
    port_is_an_argument: bool = False
    ready_http: str | None = None
    ready_log: str | None = None
    doubts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
