"""Pictures of a metric, as SVG: the same curve gives the same bytes, and no text of a user's can be more than text."""

from __future__ import annotations

import hashlib
import threading
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path

from service.application.curve import Curve

#: Drawn pictures that are kept, since many look at the same bisections at a time.
KEPT = 16
HERE = Path(__file__).parent
_one_at_a_time = threading.Lock()


def tag(curve: Curve, sources: Path = HERE) -> str:
    """Its ETag, without drawing it; another one when the same curve is drawn in another way."""
    told = f"{_drawing(sources)} {curve!r}"
    return f'"{hashlib.sha256(told.encode(errors="surrogatepass")).hexdigest()[:32]}"'


@cache
def _drawing(sources: Path) -> str:
    """The versions and the code that pictures come from."""
    code = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(sources.glob("*.py"))))
    return f"{version('firstbad')} {version('matplotlib')} {code.hexdigest()}"


def draw(curve: Curve) -> bytes:
    with _one_at_a_time:
        return _drawn(curve)


@lru_cache(maxsize=KEPT)
def _drawn(curve: Curve) -> bytes:
    # Loading matplotlib takes longer than starting all the rest of the service. It is not safe for threads.
    from service.doors.charts.figure import drawn
    from service.doors.charts.svg import described

    return described(drawn(curve), curve)
