"""What workers are asked to do, put together from what is kept."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC

from service.application import queues
from service.application.keys import fixups_of
from service.application.ordered import (
    BaseOrder,
    BuildOrder,
    DependenciesOrder,
    ProbeOrder,
    SandboxOrder,
    SourceOrder,
    SurveyOrder,
)
from service.application.ports import History
from service.domain.bisection import Bisection, Build, FailureIn, Probe, Request
from service.domain.recipe import NO_NETWORK, Recipe, SandboxKind


@dataclass(frozen=True)
class Composer:
    """Of the orders of one bisection."""

    bisection: Bisection
    history: History

    def survey(self) -> SurveyOrder:
        return SurveyOrder(self.bisection.id, self.bisection.setup.survey.attempt, self._sandbox(NO_NETWORK))

    def build(self, build: Build, base: Build | None) -> BuildOrder:
        """`base`: the build whose compiled files are to be taken."""
        request, recipe = self.bisection.request, self.bisection.request.recipe
        in_build = request.failure_in is FailureIn.BUILD
        return BuildOrder(
            key=build.key,
            attempt=build.attempt,
            source=self._source(build.sha),
            command=recipe.build_command or "",
            env=_env(request, build.sha),
            sandbox=self._sandbox(recipe.build_network),
            timeout_s=recipe.build_timeout_s,
            package=recipe.package,
            indexes=() if in_build else tuple(url.replace("{sha}", build.sha) for url in recipe.wheel_indexes),
            base=self._base(base) if base is not None else None,
            overlay_command=recipe.overlay_command,
            ahead=build.ahead,
            failure=request.reproduction.failure if in_build else None,
            project=_project(recipe),
        )

    def probe(self, probe: Probe, build: Build | None, cards: tuple[int, ...] = ()) -> ProbeOrder:
        """`cards`: the GPUs that it shall have; any, when empty."""
        request = self.bisection.request
        return ProbeOrder(
            bisection=self.bisection.id,
            probe=probe.id,
            attempt=probe.attempt,
            source=self._source(probe.sha),
            wheel=build.wheel_path if build else None,
            wheel_sha256=build.wheel_sha256 if build else None,
            dependencies=self._dependencies(probe) if build else None,
            reproduction=request.reproduction,
            env=_env(request, probe.sha),
            sandbox=self._sandbox(request.recipe.network),
            timeout_s=request.timeout_s,
            wheel_key=build.key if build else None,
            control=request.control,
            metrics=(request.metric, *request.other_metrics) if request.metric is not None else (),
            warmup=request.measuring.warmup if request.metric is not None else 0,
            cards=cards,
            resources=request.recipe.resources,
            gpu_class=self.bisection.setup.gpu_class,
            secrets=request.recipe.secrets,
            model_cache=request.recipe.model_cache,
            project=_project(request.recipe),
            target=probe.target or queues.node_of(probe.queue),
        )

    def _source(self, sha: str) -> SourceOrder:
        repo = self.bisection.request.repo
        fixups = fixups_of(self.history, self.bisection, [sha]).get(sha, ())
        return SourceOrder(repo, self.history.mirror(repo), sha, fixups)

    def _base(self, base: Build) -> BaseOrder:
        return BaseOrder(self._source(base.sha), base.wheel_path or "", base.wheel_sha256 or "")

    def _dependencies(self, probe: Probe) -> DependenciesOrder:
        recipe, as_of = self.bisection.request.recipe, self.bisection.setup.as_of
        if as_of == "commit" or probe.own_day:
            commits = self.history.commits(self.bisection.request.repo, [probe.sha])
            as_of = commits[probe.sha].committed_at.astimezone(UTC).isoformat()
        return DependenciesOrder(as_of, recipe.deps.constraints, recipe.build_network)

    def _sandbox(self, network: str) -> SandboxOrder:
        """The image as it was when the bisection began, whatever its name means by now."""
        request, builder = self.bisection.request, self.bisection.setup.builder
        if builder is None:
            image = request.recipe.image if request.sandbox is SandboxKind.DOCKER else None
            return SandboxOrder(request.sandbox, image, network)
        return SandboxOrder(request.sandbox, builder.image, network, builder.python)


def _project(recipe: Recipe) -> tuple[str, ...]:
    """A package is imported by another name than it is installed by, as far as that can be guessed."""
    return (re.sub(r"[-.]+", "_", recipe.package).lower(),) if recipe.package is not None else ()


def _env(request: Request, sha: str) -> dict[str, str]:
    return {name: value.replace("{sha}", sha) for name, value in request.recipe.env.items()}
