"""Implements FailureReader by what the worker finds in the log of a run, so that both find the same."""

from __future__ import annotations

from worker.observe import shown


def said(log: str, project: tuple[str, ...]) -> str | None:
    found = shown((line.encode("utf-8", "replace") for line in log.split("\n")), project).signature
    return (found.said or f"{found.type}: {found.message}").strip() or None if found is not None else None
