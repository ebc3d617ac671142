"""What `firstbad up` hands to its children."""

from __future__ import annotations

from collections.abc import Mapping

from service import wiring

#: Secrets of the API's own.
OF_API = frozenset({"FIRSTBAD_GITHUB_CLIENT_SECRET", "FIRSTBAD_UP_KEY"})


def environment(settings: wiring.Settings, redis_url: str) -> dict[str, str]:
    """What they read: the settings as they are here, the worker's folder and store among them."""
    ours = {
        "FIRSTBAD_HOME": str(settings.home_dir),
        "FIRSTBAD_DATABASE_URL": settings.database,
        "FIRSTBAD_REDIS_URL": redis_url,
        "FIRSTBAD_STORE_URL": settings.store,
        "FIRSTBAD_WORK_DIR": str(settings.home_dir / "work"),
        "FIRSTBAD_HIDDEN": str(settings.home_dir),
        "FIRSTBAD_SLOTS": str(settings.slots),
        "FIRSTBAD_SANDBOXES": ",".join(sorted(settings.allowed_sandboxes)),
        "FIRSTBAD_ALLOW_FILE_REPOS": str(settings.file_repos).lower(),
    }
    return {**wiring.environment(), **ours}


def of_worker(environment: Mapping[str, str]) -> dict[str, str]:
    """Which runs what others wrote, and need not know how people sign in."""
    return {name: value for name, value in environment.items() if name not in OF_API}
