"""Puts the parts of a worker together from its settings, and says what does not work on this node."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from worker.build.caches import Caches
from worker.build.environments import Environments
from worker.build.reach import Reach
from worker.build.source import Sources
from worker.build.store import Store
from worker.errors import NodeFault
from worker.gpus import Declared, Gpus, Nvml
from worker.pipeline import Pipeline, Site
from worker.pipeline.runs import Shown, not_shown
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
    trash, passed = Bin(settings.work_dir / "trash"), settings.passed_env()
    return Pipeline(
        Site(
            node=settings.node,
            work_dir=settings.work_dir,
            store=store,
            sources=_sources(settings),
            sandboxes=_sandboxes(settings, hidden),
            bin=trash,
            environments=_environments(settings, trash),
            caches=Caches(settings.work_dir / "cache", trash.throw),
            gpus=gpus_of(settings),
            passed_env=passed,
            files=files_of(passed, hidden),
            compiler_cache=settings.compiler_cache,
            secrets=settings.offered_secrets(),
            shown=shown or not_shown,
        )
    )


def _sandboxes(settings: Settings, hidden: tuple[Path, ...]) -> dict[str, Sandbox]:
    """Those that are allowed, by kind. `hidden`: folders that runs never see."""
    inside = install_inside(settings.work_dir)
    made: dict[str, Callable[[], Sandbox]] = {
        "process": lambda: _process_sandbox(settings, inside, hidden),
        "docker": lambda: _docker_sandbox(settings, inside),
    }
    return {kind: make() for kind, make in made.items() if kind in settings.sandboxes}


def _process_sandbox(settings: Settings, inside: Path, hidden: tuple[Path, ...]) -> Sandbox:
    view = View(settings.visible, hidden)
    return ProcessSandbox(settings.work_dir, inside, view, settings.sandbox_uid, models=settings.model_cache)


def _docker_sandbox(settings: Settings, inside: Path) -> Sandbox:
    # Its library is slow to import, and not every node has an engine.
    from worker.run.docker import DockerSandbox

    return DockerSandbox(
        inside=inside,
        worker=identity(settings.work_dir),
        other=settings.sandbox_uid,
        host=settings.docker_host,
        models=settings.model_cache,
        pull_s=settings.pull_timeout_s,
        pulled=settings.work_dir / "pulled",
    )


def _sources(settings: Settings) -> Sources:
    git = settings.work_dir / "git"
    reach = Reach(settings.repo_hosts, settings.private_networks)
    return Sources(git, settings.git_env(), settings.allow_file_repos, settings.fetch_timeout_s, reach)


def _environments(settings: Settings, trash: Bin) -> Environments:
    folder = settings.work_dir / "environments"
    return Environments(folder, settings.environments, trash.throw, settings.environment_timeout_s)
