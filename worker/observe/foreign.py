"""Whether a module, distribution or library is a dependency: neither the project's nor Python's, nor a test's."""

from __future__ import annotations

import re
import sys

from worker.observe.frames import LIBRARIES

#: Python's own, of whatever version.
_PYTHON = sys.stdlib_module_names | {"asynchat", "asyncore", "distutils", "imp", "smtpd"}
#: What a checkout holds beside its packages.
_LOCAL = frozenset({"benchmark", "benchmarks", "conftest", "examples", "scripts", "setup", "test", "tests", "tools"})


def foreign(name: str, project: tuple[str, ...]) -> bool:
    """`name` may go on with a dot. Without a project only libraries that many stand on count."""
    top = name.partition(".")[0]
    if not top or top.startswith("_") or top in _PYTHON or top in _LOCAL:
        return False
    if not project:
        return top in LIBRARIES or plain(top) in LIBRARIES
    return not ours(top, project)


def ours(name: str, project: tuple[str, ...]) -> bool:
    return any(plain(name) == plain(own) or plain(name).startswith(f"{plain(own)}_") for own in project)


def plain(name: str) -> str:
    """As distributions and their modules are compared: `Flash-Attn` is `flash_attn`."""
    return re.sub(r"[-_.]+", "_", name).lower()
