"""The node's folder of models, as a run sees it: not at all, read-only, or shared with other runs."""

from __future__ import annotations

import os
from pathlib import Path

from worker.errors import NodeFault

#: What the hub's library keeps in its home when somebody logs in.
LOGINS = ("token", "stored_tokens")


def folder(models: Path | None, how: str, uid: int | None) -> Path | None:
    """What is to be shown. `uid`: who works inside, None for the worker's own user. Errors: NodeFault."""
    if how == "none":
        return None
    if models is None:
        advice = "Set FIRSTBAD_MODEL_CACHE to a folder of the node, or leave the recipe's model_cache at `none`."
        raise NodeFault("model-cache", "the run wants the node's model cache, and this node has none", advice)
    if not models.is_dir():
        advice = "Make the folder, or name another one in FIRSTBAD_MODEL_CACHE."
        raise NodeFault("model-cache", f"the model cache {models} of this node is no folder", advice)
    for name in LOGINS:
        if os.path.lexists(models / name):
            message = f"the model cache {models} of this node holds a login, {name}, which every run could read"
            advice = f"Remove {models / name}: FIRSTBAD_SECRETS gives a token to those runs alone that ask for it."
            raise NodeFault("model-cache", message, advice)
    if how == "shared" and not _writable(models, uid):
        advice = f"Give it to them: chown -R {uid if uid is not None else os.getuid()} {models}"
        raise NodeFault("model-cache", f"runs may not write into the model cache {models}", advice)
    return models


def _writable(path: Path, uid: int | None) -> bool:
    if uid is None:
        return os.access(path, os.W_OK | os.X_OK)
    found = path.stat()
    shift = 6 if found.st_uid == uid else 3 if found.st_gid == uid else 0
    return (found.st_mode >> shift) & 0o3 == 0o3


def variables(how: str, place: str, *, online: bool) -> dict[str, str]:
    """`place`: the job folder as seen inside."""
    if how == "none":
        return {}
    # A login is the run's own: both of its files lie beside each other.
    found = {"HF_HOME": f"{place}/models", "HF_TOKEN_PATH": f"{place}/work/home/.cache/huggingface/token"}
    if how == "read-only":
        # Code that comes with a model is copied before it is imported.
        found["HF_MODULES_CACHE"] = f"{place}/work/home/.cache/huggingface/modules"
    if not online:
        # Without it each file is asked for again and again until the library gives up.
        found["HF_HUB_OFFLINE"] = "1"
    return found
