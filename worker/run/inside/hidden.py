# ruff: noqa: PTH108, PTH118 (see __init__)
"""Secrets: taken from the job folder before anything else is done, and hidden in all that the run writes."""

from __future__ import annotations

import os

from .log import LINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Pattern

    Forms = list[tuple[bytes, bytes]]  # what a secret may look like, and what is shown instead; the longest first


def take(root: str) -> tuple[dict[str, str], Forms]:
    """The variables, and what is to be hidden. The file is gone then, before anything else could read it."""
    path = os.path.join(root, "work", "secrets.json")
    if not os.path.lexists(path):
        return {}, []
    from .phases import load

    told = load(path)
    os.unlink(path)
    return told["values"], [(form.encode("latin1"), b"[" + name.encode() + b"]") for form, name in told["hidden"]]


class Hider:
    """Of one stream: `feed` takes it piece by piece and answers what may be shown by now, at most LINE at a time.

    What it answers in the end does not depend on how the stream was cut: at each place the longest form counts.
    """

    def __init__(self, forms: Forms) -> None:
        import re

        self.forms = dict(forms)
        self.longest = max(map(len, self.forms))
        self.sorted = sorted(self.forms)
        self.head = min(4, *map(len, self.forms))
        self.heads = {form[: self.head] for form in self.forms}
        self.pattern: Pattern[bytes] = re.compile(b"|".join(re.escape(form) for form, _ in forms))
        self.held = b""

    def feed(self, data: bytes) -> list[bytes]:
        """With b"" the stream ends, and nothing is held back any more."""
        text, shown, at = self.held + data, [], 0
        safe = self.begins(text, 0) if data else len(text)
        # To look for each is much faster than to look for any of them.
        match = self.pattern.search(text) if any(form in text for form in self.forms) else None
        while match is not None and match.start() < safe:
            shown += [text[at : match.start()], self.forms[match.group()]]
            at = match.end()
            if at > safe:
                safe = self.begins(text, at)
            match = self.pattern.search(text, at)
        shown.append(text[at:safe])
        self.held = text[safe:]
        joined = b"".join(shown)
        return [joined[start : start + LINE] for start in range(0, len(joined), LINE)]

    def begins(self, text: bytes, at: int) -> int:
        """Where the end of the text may be the beginning of what is to be hidden; its length when it is none."""
        from bisect import bisect_right

        for start in range(max(at, len(text) - self.longest + 1), len(text)):
            if len(text) - start >= self.head and text[start : start + self.head] not in self.heads:
                continue
            # What begins with it and is longer stands right behind it.
            rest = text[start:]
            behind = bisect_right(self.sorted, rest)
            if behind < len(self.sorted) and self.sorted[behind].startswith(rest):
                return start
        return len(text)
