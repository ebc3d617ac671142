"""A request that was made from another one's."""

from __future__ import annotations

from dataclasses import replace

from service.domain.bisection import Request


def as_cloned(request: Request, original: Request) -> Request:
    """With what cannot be written in a request, where it is still true: what was done to a pasted script was done to
    this one, and a control that came of it by replacing texts is that control."""
    control = original.control
    if control is not None and request.control == replace(control, failure=None):
        request = replace(request, control=control)
    if request.reproduction != original.reproduction:
        return request
    notes = (*original.notes, *(note for note in request.notes if note not in original.notes))
    return replace(request, notes=notes)
