"""Builds the adapters from one frozen Settings and hands them to the flow."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from service.application.ports import Policy, Ports
from service.domain.access import Scope, Token
from service.domain.policy import CallerPolicy
from service.domain.recipe import Recipe, SandboxKind
from service.settings import Inherited, Settings, complaints, environment, misspelt

if TYPE_CHECKING:
    from service.adapters.artifacts import Artifacts
    from service.adapters.database.repository import Database
    from service.adapters.github_sign_in import GitHubSignIn
    from service.adapters.probe_queue import CeleryQueue
    from service.adapters.telemetry.watch import Telemetry
    from service.application.flow import Flow
    from service.application.sign_in import SignIn
    from service.domain.sign_in import Grant

__all__ = [
    "Inherited",
    "Settings",
    "Wired",
    "any_token",
    "check",
    "complaints",
    "environment",
    "inherited",
    "log_to_stderr",
    "make_token",
    "misspelt",
    "settings",
    "sign_in",
    "wire",
]


@dataclass(frozen=True)
class Wired:
    settings: Settings
    flow: Flow
    queue: CeleryQueue
    telemetry: Telemetry


def settings(**given: object) -> Settings:
    """From the environment; what is given here goes before it."""
    return Settings.model_validate({**Settings().model_dump(), **{n: v for n, v in given.items() if v is not None}})


def inherited() -> Inherited:
    return Inherited()


def log_to_stderr(level: str, how: str = "text", addresses: Collection[str] = ()) -> None:
    """`how`: "text" or "json". `addresses`: URLs whose passwords are shown nowhere."""
    from service.adapters.telemetry import lines

    lines.set_up(level, how, addresses)


def check(settings: Settings) -> None:
    """Whether `wire` will find the settings fit. Errors: ValueError, which names the setting."""
    from service.adapters.telemetry import traces

    _recipes(settings)
    _policy(settings)
    _provider(settings)
    traces.check(settings.otlp_endpoint)
    store(settings)


def store(settings: Settings) -> Artifacts:
    """Errors: ValueError, which names the setting."""
    from service.adapters.artifacts import Artifacts

    try:
        return Artifacts(settings.store)
    except ValueError as error:
        raise ValueError(f"FIRSTBAD_STORE_URL: {error}") from error


def database(settings: Settings) -> Database:
    """Errors: BadDatabaseUrl."""
    from service.adapters.database.engine import create_engine
    from service.adapters.database.repository import Database

    return Database(create_engine(settings.database))


def any_token(settings: Settings) -> bool:
    """Whether there is one that works."""
    from service.adapters.clock import SystemClock
    from service.application.access import works

    now = SystemClock().now()
    with database(settings).reading() as tx:
        return any(works(token, now) for token in tx.tokens())


def make_token(settings: Settings, name: str, scope: Scope, days: float | None) -> tuple[Token, str]:
    """In the database itself, as by who may read and write it. Errors: BadRequest."""
    from service.adapters.clock import SystemClock
    from service.application.access import keep, new_token

    made, text = new_token(name, scope, "who holds the database", days, SystemClock().now())
    with database(settings).transaction() as tx:
        keep(tx, made)
    return made, text


def wire(settings: Settings, service: str = "firstbad") -> Wired:
    """`service`: by which name it traces what it does."""
    if settings.redis_url is None:
        raise ValueError("FIRSTBAD_REDIS_URL is not set: name a Redis, or use `firstbad up`, which starts its own")
    # Half a second of imports that those who only want the settings need not wait for.
    from service.adapters import failures, readers, servers
    from service.adapters.addresses import Addresses
    from service.adapters.clock import RandomIds, SystemClock
    from service.adapters.git_history import GitHistory
    from service.adapters.live_logs import RedisLiveLogs
    from service.adapters.probe_queue import CeleryQueue
    from service.adapters.telemetry import traces
    from service.adapters.telemetry.watch import Telemetry, WatchedBisections
    from service.adapters.webhook_sender import WebhookSender
    from service.application.flow import Flow

    telemetry = Telemetry(traces.tracing(settings.otlp_endpoint, service))
    queue = CeleryQueue(settings.redis_url, telemetry.tracing.traceparent)
    addresses = Addresses(settings.repo_hosts, settings.private_networks)
    ports = Ports(
        bisections=WatchedBisections(database(settings), telemetry.meters),
        history=GitHistory(
            _made(settings.mirrors_dir),
            allow_file=settings.file_repos,
            addresses=addresses,
        ),
        queue=queue,
        artifacts=store(settings),
        live=RedisLiveLogs(settings.redis_url),
        clock=SystemClock(),
        ids=RandomIds(),
        recipes=_recipes(settings),
        servers=servers.load(),
        readers=readers.load(),
        failures=failures.said,
        policy=_policy(settings),
        watch=telemetry,
        sender=WebhookSender(addresses),
    )
    return Wired(settings, Flow(ports), queue, telemetry)


def sign_in(wired: Wired) -> SignIn | None:
    """None where nobody signs in. Errors: ValueError, which names the setting."""
    from service.application.sign_in import SignIn

    settings, ports = wired.settings, wired.flow.ports
    found = _provider(settings)
    if found is None or settings.site is None:
        return None
    return SignIn(ports.bisections, ports.clock, *found, settings.site)


def _provider(settings: Settings) -> tuple[GitHubSignIn, tuple[Grant, ...]] | None:
    """With who may do what."""
    from service.adapters.github_sign_in import GitHubSignIn
    from service.domain import sign_in

    if settings.github_client_id is None:
        return None
    secret = settings.github_client_secret
    if secret is None or settings.site is None or not settings.sign_in:
        raise ValueError(
            "FIRSTBAD_GITHUB_CLIENT_ID: signing in needs FIRSTBAD_GITHUB_CLIENT_SECRET, FIRSTBAD_SITE and "
            "FIRSTBAD_SIGN_IN too, as docs/access.md shows"
        )
    try:
        grants = sign_in.read(settings.sign_in)
    except ValueError as error:
        raise ValueError(f"FIRSTBAD_SIGN_IN: {error}") from None
    provider = GitHubSignIn(
        settings.github_client_id,
        secret.get_secret_value(),
        f"{settings.site}{sign_in.CALLBACK}",
        sign_in.groups_of(grants),
        settings.github_url,
        settings.github_api_url,
    )
    return provider, grants


def _recipes(settings: Settings) -> dict[str, Recipe]:
    from service.adapters import recipes

    where = f"FIRSTBAD_RECIPES_DIR: {str(settings.recipes_dir)!r}"
    try:
        return recipes.load(settings.recipes_dir)
    except recipes.BadRecipe as error:
        raise ValueError(f"{where}: {error}") from error
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        raise ValueError(f"{where}: {said}; name a folder with files like vllm.yaml") from error


def _policy(settings: Settings) -> Policy:
    allowed = frozenset(SandboxKind(name) for name in settings.allowed_sandboxes)
    wheels, logs = ((int(most) if most is not None else None) for most in (settings.store_budget, settings.log_budget))
    return Policy(
        allowed,
        SandboxKind(settings.usual_sandbox),
        ahead=settings.ahead,
        store_bytes=wheels,
        keep_wheels_s=settings.keep_wheels,
        keep_logs_s=settings.keep_logs,
        log_bytes=logs,
        callers=_callers(settings),
    )


def _callers(settings: Settings) -> tuple[CallerPolicy, ...]:
    from service.adapters import policies

    try:
        return policies.load(settings.policies)
    except ValueError as error:
        raise ValueError(f"FIRSTBAD_POLICIES: {error}") from error


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
