"""What is secret in what users wrote is never shown."""

from __future__ import annotations

import re


def without_password(repo: str) -> str:
    """A token in a clone URL is for git alone; the user of an ssh URL is no secret."""
    match = re.match(r"(?i)([a-z][a-z0-9+.-]*)://([^/]*)@", repo)
    if match is None or (match[1].lower() == "ssh" and ":" not in match[2]):
        return repo
    user = f"{match[2].partition(':')[0]}:" if ":" in match[2] else ""
    return f"{match[1]}://{user}***@{repo[match.end() :]}"
