"""firstbad run: what `git bisect run` does, several at once, in work trees of its own."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from service.cli import run_shown, tell
from service.cli.options import HOME, Home, Json
from service.cli.status import CommandError, Status
from service.domain import duration, size
from service.domain.evidence import Verdict
from service.local.asked import Clean, Container, Rules
from service.local.git import GitFailed, NoGit
from service.local.log import RunFolder
from service.local.loop import End
from service.local.processes import NotStarted
from service.local.running import Run, Wish, begun, carry_out, prepared
from service.local.step import named
from service.local.telling import document, state_of
from service.local.worktrees import NoRoom

_RANGE = re.compile(r"(?P<old>[^\s.][^\s]*?[^/.\s]|[^\s./])\.\.(?P<new>[^\s./][^\s]*)?")
_ENDS = {"found": Status.OK, "suspects": Status.SUSPECTS, "refused": Status.USAGE}


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="[A..B] -- SCRIPT [ARGUMENT…]", help="The script, after two dashes.")
    ] = [],  # noqa: B006
    good: Annotated[list[str], typer.Option(help="A commit that is good; may be repeated.")] = [],  # noqa: B006
    bad: Annotated[list[str], typer.Option(help="The commit that is bad.", show_default="HEAD")] = [],  # noqa: B006
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=256, help="Commits tried at once.")] = 1,
    timeout: Annotated[str | None, typer.Option(help="Of one run, as in 90s or 20m; then it is skipped.")] = None,
    timeout_is_bad: Annotated[bool, typer.Option("--timeout-is-bad", help="A run out of time has failed.")] = False,
    skip_is: Annotated[Verdict, typer.Option(help="What a commit that cannot be tested counts as.")] = Verdict.SKIP,
    same_failure: Annotated[
        bool, typer.Option("--same-failure/--any-failure", help="Skip what fails in another way than the bad commit.")
    ] = False,
    flaky: Annotated[bool, typer.Option("--flaky", help="Try commits again, until the answer is sure enough.")] = False,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.999, help="How sure, with --flaky.")] = 0.95,
    find_fix: Annotated[bool, typer.Option("--find-fix", help="Find the commit that mended it: bad is older.")] = False,
    first_parent: Annotated[bool, typer.Option("--first-parent", help="Only commits of the main line.")] = False,
    extra: Annotated[
        list[str], typer.Option("--with", metavar="PATH", help="Your own file to lay over each commit; repeatable.")
    ] = [],  # noqa: B006
    env: Annotated[list[str], typer.Option("--env", "-e", metavar="NAME=VALUE", help="For the script.")] = [],  # noqa: B006
    clean: Annotated[Clean, typer.Option(help="What goes from a work tree before the next commit.")] = Clean.KEEP,
    container: Annotated[
        str | None, typer.Option(metavar="IMAGE", help="Run the script in this image, by docker.")
    ] = None,
    network: Annotated[str, typer.Option(help="Of the container.")] = "none",
    log_limit: Annotated[str, typer.Option(help="What is kept of one log.")] = "64MiB",
    again: Annotated[bool, typer.Option("--again", help="Begin anew; forget what an interrupted run found.")] = False,
    as_json: Json = False,
    home: Home = HOME,
) -> None:
    """Find the first bad commit of this checkout with a script, as git bisect run does, and several at once.

    The script's exit status: 0 good, 125 skip, 1 to 124 bad. It runs in work trees of its own, and your checkout is not
    touched. No service is needed.
    """
    goods, bads, words = _ends(command, good, bad, find_fix)
    wish = Wish(
        command=tuple(words),
        goods=goods,
        bads=bads,
        find_fix=find_fix,
        width=jobs,
        first_parent=first_parent,
        laid=tuple(extra),
        env=tuple(_variable(one) for one in env),
        container=None if container is None else Container(container, network),
        timeout_s=None if timeout is None else duration.seconds(timeout, field="--timeout"),
        clean=clean,
        rules=Rules(same_failure, skip_is, timeout_is_bad, flaky, confidence),
        again=again,
        cap_bytes=size.size(log_limit, field="--log-limit"),
    )
    with _signals():
        try:
            raise typer.Exit(_run(wish, home.expanduser().resolve(), as_json))
        except (NotStarted, NoRoom, GitFailed) as error:
            raise CommandError(str(error), "the same command goes on where it was", status=Status.FAILED) from None
        except NoGit:
            raise CommandError("git is not installed here", "install git", status=Status.FAILED) from None


def _run(wish: Wish, home: Path, as_json: bool) -> Status:
    prepared_run = prepared(wish, Path.cwd())
    with begun(prepared_run, home) as folder:
        shown = run_shown.shown(prepared_run, folder, as_json)
        _note(prepared_run, folder, "running")
        try:
            with shown:
                end = carry_out(prepared_run, folder, shown)
        except KeyboardInterrupt:
            _note(prepared_run, folder, "interrupted")
            run_shown.interrupted(folder)
            return Status.INTERRUPTED
        except (NotStarted, NoRoom, GitFailed):
            _note(prepared_run, folder, "failed")
            raise
        return _finished(prepared_run, folder, end, as_json)


def _note(run: Run, folder: RunFolder, state: str) -> None:
    folder.write_run(document(run, str(folder.path), (), {}, state=state))


def _finished(run: Run, folder: RunFolder, end: End, as_json: bool) -> Status:
    shas = {one.seen.sha for one in end.judged} | set(named(end.step))
    titles = run.checkout.titles(shas) if shas else {}
    told = document(run, str(folder.path), end.judged, titles, end.step)
    folder.write_run(told)
    if as_json:
        tell.as_program(told)
    else:
        run_shown.answer(run, folder, end, titles)
    return _ENDS[state_of(end.step)]


def _ends(
    words: Sequence[str], good: Sequence[str], bad: Sequence[str], find_fix: bool
) -> tuple[tuple[str, ...], tuple[str, ...], Sequence[str]]:
    """Errors: CommandError, where a range and an end are given."""
    found = _RANGE.fullmatch(words[0]) if words else None
    if found is None or Path(words[0]).exists():
        return tuple(good), tuple(bad), words
    if good or bad:
        raise CommandError(f"{words[0]} is both ends already", "leave out --good and --bad")
    old, new = (found["old"],), (found["new"] or "HEAD",)
    return (new, old, words[1:]) if find_fix else (old, new, words[1:])


def _variable(written: str) -> tuple[str, str]:
    name, equals, value = written.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise CommandError(f"--env {written}: there is no name and value in it", "write it like --env CC=clang")
    return name, value


@contextmanager
def _signals() -> Iterator[None]:
    """To be ended politely, or to lose the terminal, is the same as Ctrl-C: what runs ends, the work trees go."""

    def ask(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
