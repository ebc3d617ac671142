"""Pictures of a metric, as SVG: the same curve gives the same bytes, and no text of a user's can be more than text."""

from __future__ import annotations

import hashlib
import threading
from functools import lru_cache
from importlib.metadata import version

from service.application.curve import Curve

#: Drawn pictures that are kept, since many look at the same bisections at a time.
KEPT = 16
#: To be raised when the same curve is drawn in another way.
DRAWING = 1
_one_at_a_time = threading.Lock()


def tag(curve: Curve) -> str:
    """Its ETag, without drawing it."""
    told = f"{version('firstbad')} {DRAWING} {curve!r}"
    return f'"{hashlib.sha256(told.encode(errors="surrogatepass")).hexdigest()[:32]}"'


def draw(curve: Curve) -> bytes:
    with _one_at_a_time:
        return _drawn(curve)


@lru_cache(maxsize=KEPT)
def _drawn(curve: Curve) -> bytes:
    # Loading matplotlib takes longer than starting all the rest of the service. It is not safe for threads.
    from service.doors.charts.figure import drawn
    from service.doors.charts.svg import described

    return described(drawn(curve), curve)
