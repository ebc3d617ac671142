"""From what a user asked for to a run: the repository looked up, the ends and the range between them, the folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from service.domain.errors import BadRequest
from service.local import containers, laid, probing
from service.local.asked import Asked, Clean, Container, Rules, Terms
from service.local.history import Checkout
from service.local.log import RunFolder, opened, put_away
from service.local.loop import End, Loop, Teller
from service.local.step import Task
from service.local.worktrees import Source, remove
from service.search import Range

_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Wish:
    """As it was written. `goods`, `bads`: of these, one side is the older one, which may have several."""

    command: tuple[str, ...]
    goods: tuple[str, ...] = ()
    bads: tuple[str, ...] = ()
    find_fix: bool = False
    width: int = 1
    first_parent: bool = False
    laid: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    container: Container | None = None
    timeout_s: float | None = None
    clean: Clean = Clean.KEEP
    rules: Rules = field(default_factory=Rules)
    again: bool = False
    cap_bytes: int = 64 << 20

    @property
    def terms(self) -> Terms:
        return Terms("bad", "good") if self.find_fix else Terms()

    @property
    def ends(self) -> tuple[tuple[str, ...], str]:
        """The older ones and the newer one. Errors: BadRequest."""
        olds, news = (self.bads, self.goods) if self.find_fix else (self.goods, self.bads)
        old, new = self.terms.old, self.terms.new
        if len(news) > 1:
            raise BadRequest(f"--{new} was given {len(news)} times, and one is wanted", field=new)
        if not olds:
            advice = f"name one: firstbad run --{old} COMMIT -- SCRIPT"
            raise BadRequest(f"no {old} commit was given", field=old, advice=advice)
        return olds, news[0] if news else "HEAD"


@dataclass(frozen=True)
class Run:
    checkout: Checkout
    asked: Asked
    task: Task
    wish: Wish
    engine: containers.Engine | None = None


def prepared(wish: Wish, cwd: Path) -> Run:
    """Errors: UserError."""
    if not wish.command:
        raise BadRequest(
            "no script was given", advice="write it after two dashes: firstbad run --good A -- ./script.sh"
        )
    checkout = Checkout.at(cwd)
    old_refs, new_ref = wish.ends
    olds = tuple(dict.fromkeys(checkout.commit(ref, wish.terms.old) for ref in old_refs))
    new = checkout.commit(new_ref, wish.terms.new)
    bases = checkout.bases(olds, new)
    range_ = checkout.range((*olds, *bases), new, first_parent=wish.first_parent)
    over = laid.laid_over(checkout, wish.command, wish.laid)
    asked = Asked(
        repository=str(checkout.common),
        olds=(*olds, *bases),
        new=new,
        command=over.command,
        first_parent=wish.first_parent,
        folder=checkout.folder,
        laid=over.sums(checkout.top),
        env=wish.env,
        container=wish.container,
        timeout_s=wish.timeout_s,
        clean=wish.clean,
        terms=wish.terms,
    )
    return Run(checkout, asked, _task(wish, checkout, range_, asked.olds, bases), wish, _engine(wish.container))


def _engine(container: Container | None) -> containers.Engine | None:
    """Errors: BadRequest."""
    if container is None:
        return None
    found = containers.Engine.found()
    found.check(container.image)
    return found


def _task(wish: Wish, checkout: Checkout, range_: Range, olds: tuple[str, ...], bases: tuple[str, ...]) -> Task:
    def halfway(goods: Sequence[str], bad: str) -> str:
        return checkout.halfway(goods, bad, first_parent=wish.first_parent)

    return Task(
        range_=range_,
        goods=olds,
        width=wish.width,
        flaky=wish.rules.flaky,
        confidence=wish.rules.confidence,
        terms=wish.terms,
        bases=bases,
        halfway=None if range_.is_line else halfway,
    )


@contextlib.contextmanager
def begun(run: Run, home: Path) -> Iterator[RunFolder]:
    """The run's folder; work trees and all else that it needs only while it is under way are gone afterwards.

    Errors: NotNow.
    """
    base = home / "run" / _folder_of(run.checkout.common)
    with opened(base, run.asked, again=run.wish.again) as folder:
        try:
            remove(folder.files)
            laid.keep(run.checkout.top, [name for name, _ in run.asked.laid], folder.files)
            yield folder
        finally:
            put_away(folder.path)


def carry_out(run: Run, folder: RunFolder, teller: Teller) -> End:
    """Errors: those of Loop.run."""
    source = Source.of(run.checkout.own_dir)
    borrowed = probing.borrowed(run.checkout.common, [run.checkout.own_dir])
    bench = probing.Bench(run.asked, folder, borrowed, run.wish.cap_bytes, run.engine)
    return Loop(bench, run.task, run.wish.rules, source, run.checkout.titles, teller).run()


def _folder_of(common: Path) -> str:
    """Named so that a person finds it, whatever the repository's own name holds."""
    place = common.parent if common.name == ".git" else common
    name = _NAME.sub("-", os.fsencode(place.name).decode("ascii", "replace")).strip("-.")[:40] or "repository"
    return f"{name}-{hashlib.sha256(os.fsencode(common)).hexdigest()[:8]}"
