"""Puts the parts of a worker together from its settings, and says what does not work on this node."""

from __future__ import annotations

import logging
from pathlib import Path

from worker.build.environments import Environments
from worker.build.source import Sources
from worker.build.store import Store
from worker.errors import NodeFault
from worker.gpus import Declared, Gpus, Nvml
from worker.pipeline import Pipeline, Site
from worker.pipeline.runs import Shown
from worker.run.bin import Bin
from worker.run.job import identity, install_inside
from worker.run.process import ProcessSandbox
from worker.run.sandbox import Sandbox
from worker.run.shared import shared_folder
from worker.run.view import View, files_of
from worker.settings import Settings, declared

log = logging.getLogger(__name__)


def facts_of(sandbox: Sandbox) -> dict[str, str]:
    """Where a sandbox does not work on this node, that is the fact."""
    try:
        return sandbox.facts()
    except NodeFault as fault:
        return {"fault": f"{fault.message}. {fault.advice}"}


def store_fault(store: Store) -> str:
    """Why nothing can be stored; empty when all is well."""
    try:
        store.check()
    except NodeFault as fault:
        log.warning("%s. %s", fault.message, fault.advice)
        return f"{fault.message}. {fault.advice}"
    return ""


def gpus_of(settings: Settings) -> Gpus:
    """Errors: NodeFault."""
    folder, known = settings.gpu_dir or shared_folder("gpus"), declared(settings.gpus)
    cards = Declared.of(known, folder) if known is not None else Nvml()
    return Gpus(cards, folder, settings.gpu_wait_s)


def make_pipeline(settings: Settings, shown: Shown | None = None) -> Pipeline:
    """`shown`: lets people watch the logs of what runs."""
    store = Store(settings.store)
    hidden = (settings.work_dir, Path("/etc/firstbad"), *settings.hidden, *([store.local] if store.local else []))
    inside = install_inside(settings.work_dir)
    sandboxes: dict[str, Sandbox] = {}
    if "process" in settings.sandboxes:
        view = View(settings.visible, hidden)
        sandboxes["process"] = ProcessSandbox(
            settings.work_dir, inside, view, settings.sandbox_uid, models=settings.model_cache
        )
    if "docker" in settings.sandboxes:
        # Its library is slow to import, and not every node has an engine.
        from worker.run.docker import DockerSandbox

        sandboxes["docker"] = DockerSandbox(
            inside,
            identity(settings.work_dir),
            settings.sandbox_uid,
            settings.docker_host,
            settings.model_cache,
            settings.pull_timeout_s,
        )
    trash = Bin(settings.work_dir / "trash")
    sources = Sources(
        settings.work_dir / "git", settings.git_env(), settings.allow_file_repos, settings.fetch_timeout_s
    )
    environments = Environments(
        settings.work_dir / "environments", settings.environments, trash.throw, settings.environment_timeout_s
    )
    passed = settings.passed_env()
    files = files_of(passed, hidden)
    return Pipeline(
        Site(
            settings.node,
            settings.work_dir,
            store,
            sources,
            sandboxes,
            trash,
            environments,
            gpus_of(settings),
            passed,
            files,
            settings.compiler_cache,
            settings.offered_secrets(),
            **({"shown": shown} if shown is not None else {}),
        )
    )
