"""What people write for a commit, told apart by its form alone. Pure: which commit it is, only a repository can say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache

from packaging.version import InvalidVersion, Version

#: More than this is no ref.
LONGEST = 500
UNITS = ("second", "minute", "hour", "day", "week", "month", "year")


@dataclass(frozen=True)
class Named:
    """As git itself understands it: a SHA, a branch, a tag, HEAD~50."""

    name: str


@dataclass(frozen=True)
class Sha:
    """Digits of a commit's id, in lower case; `of` tells what held them."""

    digits: str
    of: str


@dataclass(frozen=True)
class Release:
    """`package`: whose version it is, where that was written."""

    version: Version
    package: str | None = None


@dataclass(frozen=True)
class Ago:
    count: int
    unit: str


@dataclass(frozen=True)
class Until:
    """The last commit of the main line of `branch` (the default one) by then. A day is meant to its end, in UTC."""

    when: date | Ago
    branch: str | None = None
    package: str | None = None


@dataclass(frozen=True)
class Pull:
    number: int


@dataclass(frozen=True)
class Pair:
    """Both ends at once: they are written as refs again."""

    good: str
    bad: str


@dataclass(frozen=True)
class Useless:
    """It is plain what was meant, and that no commit follows from it."""

    why: str
    advice: str


Form = Named | Sha | Release | Until | Pull | Pair | Useless


@dataclass(frozen=True)
class Reading:
    """`home`: owner/name of the repository that an address, or owner/name#1, speaks of; `site`: to clone it from."""

    form: Form
    home: str | None = None
    site: str | None = None


_URL = re.compile(r"https?://([^/\s?#]+)/([^\s?#]*)[^\s]*")
_OWN = r"((?:[\w.-]+/){1,5}?[\w.-]+?)(?:\.git)?(?:/-)?"
_PAIR = re.compile(r"([^\s.][^\s]*?)\.\.\.?([^\s.][^\s]*)")
_PULL = re.compile(r"(?i)(?:([\w.-]+/[\w.-]+)#|(?:(?:pr|pull|pull request|mr|gh)[ -]?[#/]?|#))([0-9]{1,9})")
_DAY = r"((?:19|20)[0-9]{2})-?([0-9]{2})-?([0-9]{2})"
_NIGHTLY = re.compile(rf"(?i)(?:([a-z][\w.]*) )?(?:nightly[ /_:-]?(?:main[_-])?|dev)?{_DAY}(?:[ -]?nightly)?")
_AT = re.compile(r"([^\s@{}]*)@\{([^{}]+)\}")
_AGO = re.compile(rf"(?i)([0-9]{{1,4}}|an?|one)[ .-]+({'|'.join(UNITS)})s?[ .-]+ago")
_PIN = re.compile(
    r"([A-Za-z][\w.]*(?:-[A-Za-z][\w.]*)*)(?:\[[\w,. -]*\])?(?:\s*={2,3}\s*|\s+|@|-|/|_)(?i:version\s+)?([vV]?[0-9]\S*)"
)
_VERSION = re.compile(r"[vV]?([0-9]+(?:\.[0-9]+)+\S*)")
_LOCAL_SHA = re.compile(r"(?i)(?:^|\.)(?:g|git)?([0-9a-f]{7,40})(?=$|\.)")
_IMAGE = re.compile(r"(?:docker://)?((?:[\w.-]+(?::[0-9]+)?/)*[\w.-]+):([\w][\w.-]{0,127})(?:@sha256:[0-9a-f]{64})?")
_DIGEST = re.compile(r"[\w./:-]+@sha256:[0-9a-f]{64}")
_IN_TAG = re.compile(r"(?:^|[._-])g?([0-9a-f]{7,40})(?=$|[._-])")
_DAY_IN_TAG = re.compile(rf"(?:^|[._-]){_DAY}(?=$|[._-])")
_VERSION_IN_TAG = re.compile(r"(?:^|[._-])v?([0-9]+\.[0-9]+\.[0-9]+(?:\.?(?:a|b|rc|post|dev)[0-9]+)?)(?=$|[._-])")
_WHEEL = re.compile(r"(?:\S*/)?([A-Za-z][\w.]*)-([0-9][^\s/-]*)(?:-[^\s/]+)?\.whl")
_FULL = re.compile(r"(?i)[0-9a-f]{40}(?:[0-9a-f]{24})?")
#: No names of packages: what stands before a version, or in a tag before it.
PLAIN = frozenset({"", "v", "ver", "version", "release", "releases", "rel", "tag", "tags"})


def read(text: str) -> Reading:
    """Never raises. What has no other form is Named, whether or not git could have such a name."""
    written = text.strip(" `'\"")
    if len(written) > LONGEST or not written.isprintable():
        return Reading(Named(text))
    return _read(written)


@lru_cache(maxsize=1024)
def _read(written: str) -> Reading:
    for reader in (_of_url, _of_pull):
        if (found := reader(written)) is not None:
            return found
    return Reading(next(_forms(written), Named(written)))


def _forms(written: str) -> Iterator[Form]:
    for reader in (_of_wheel, _of_pair, _of_moment, _of_night, _of_pin, _of_image):
        if (found := reader(written)) is not None:
            yield found


def _of_url(written: str) -> Reading | None:
    """Of the web pages of GitHub, GitLab and Gitea, and of whatever else has a full SHA in its path."""
    if (url := _URL.fullmatch(written.rstrip("/").strip("<>"))) is None:
        return None
    host, path = url[1].rpartition("@")[2], _unquoted(url[2]).rstrip("/")
    for pattern, make in _PAGES:
        if (found := re.fullmatch(_OWN + pattern, path)) is not None:
            return Reading(make(found[2]), found[1], f"https://{host}/{found[1]}")
    if (wheel := _of_wheel(path)) is not None:
        return Reading(wheel)
    shas = {part.lower() for part in re.split(r"[/:@]", path) if _FULL.fullmatch(part)}
    if len(shas) == 1:
        return Reading(Sha(shas.pop(), "an address"))
    return Reading(Useless("is an address that no commit can be read from", "give the address of a commit, or its SHA"))


def _of_pair(written: str) -> Form | None:
    found = _PAIR.fullmatch(written)
    return Pair(found[1], found[2]) if found is not None and ".." not in found[2] else None


def _compared(path: str) -> Form:
    """GitHub's page compares A...B; across forks a name is written owner:branch, which is no ref of this one."""
    return _of_pair(path) or Useless("compares one commit with the default branch", "give A..B, or both ends")


def _page(written: str) -> Form:
    return Sha(written.lower(), "an address") if _FULL.fullmatch(written) else Named(written)


_PAGES = (
    (r"/commits?/([0-9a-fA-F]{7,64})(?:\.patch|\.diff)?", lambda found: Sha(found.lower(), "an address")),
    (r"/(?:pull|pulls)/[0-9]+/(?:commits|changes)/([0-9a-fA-F]{7,64})", lambda found: Sha(found.lower(), "an address")),
    (r"/(?:pull|pulls|merge_requests)/([0-9]{1,9})(?:/.*)?", lambda found: Pull(int(found))),
    (r"/compare/(.+?)(?:\.patch|\.diff)?", _compared),
    (r"/releases/tag/(.+)", lambda found: Named(f"tags/{found}")),
    (r"/releases/download/([^/]+)/.*", lambda found: Named(f"tags/{found}")),
    (r"/(?:archive|tarball|zipball)/(?:refs/)?(.+?)(?:\.tar\.gz|\.zip)?", _page),
    (r"/src/(?:commit|tag|branch)/([^/]+)(?:/.*)?", _page),
    (r"/(?:blob|raw|blame|tree)/([0-9a-fA-F]{40})(?:/.*)?", _page),
    (r"/(?:tree|tags|commits)/(.+)", _page),
)


def _unquoted(path: str) -> str:
    return re.sub(r"%([2-7][0-9A-Fa-f])", lambda found: chr(int(found[1], 16)), path)


def _of_pull(written: str) -> Reading | None:
    found = _PULL.fullmatch(written)
    return Reading(Pull(int(found[2])), found[1]) if found is not None else None


def _of_moment(written: str) -> Form | None:
    """main@{2 weeks ago}, 2 weeks ago, yesterday."""
    at = _AT.fullmatch(written)
    branch, said = (at[1] or None, at[2].strip()) if at is not None else (None, written)
    branch = None if branch in ("HEAD", "") else branch
    if said.lower() in ("yesterday", "today"):
        return Until(Ago(int(said.lower() == "yesterday"), "day"), branch)
    if (ago := _AGO.fullmatch(said)) is not None:
        return Until(Ago(int(ago[1]) if ago[1].isdigit() else 1, ago[2].lower()), branch)
    if at is None:
        return None
    if (moment := _moment(said)) is not None:
        return Until(moment, branch)
    night = _of_night(said)
    return replace(night, branch=branch) if isinstance(night, Until) else None


def _moment(said: str) -> datetime | None:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+(?:Z|[+-][0-9:]+)?", said):
        return None
    try:
        found = datetime.fromisoformat(said)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _of_night(written: str) -> Form | None:
    found = _NIGHTLY.fullmatch(written)
    if found is None:
        return None
    package = None if (found[1] or "").lower() in PLAIN else found[1]
    return _night(found[2] + found[3] + found[4], package)


def _night(digits: str, package: str | None) -> Form:
    try:
        day = date(int(digits[:4]), int(digits[4:6]), int(digits[6:8]))
    except ValueError:
        return Useless("is no day of the calendar", "write a day like 2026-07-29")
    return Until(day, package=package)


def _of_wheel(written: str) -> Form | None:
    found = _WHEEL.fullmatch(written)
    return _version(found[2].replace("%2B", "+"), found[1]) if found is not None else None


def _of_pin(written: str) -> Form | None:
    """pkg==1.2.3, torch 2.8.0.dev20260729, 1.2.3."""
    pin = _PIN.fullmatch(written)
    if pin is not None and _is_version(pin[2]):
        return _version(pin[2], None if pin[1].lower() in PLAIN else pin[1])
    found = _VERSION.fullmatch(written)
    return _version(written, None) if found is not None and _is_version(written) else None


def _is_version(written: str) -> bool:
    try:
        return len(Version(written).release) > 1
    except InvalidVersion:
        return False


def _version(written: str, package: str | None) -> Form | None:
    """A build of a commit names it; a nightly one, its day."""
    try:
        found = Version(written)
    except InvalidVersion:
        return None
    local = found.local or ""
    # As it is written: of a local part that is a number the zeros before it are lost.
    sha = _LOCAL_SHA.search(written.partition("+")[2])
    if sha is not None and (sha[0].lstrip(".").lower().startswith("g") or not sha[1].isdigit()):
        return Sha(sha[1].lower(), f"the version {written}")
    if found.dev is not None:
        if re.fullmatch(r"20[0-9]{6}", str(found.dev)):
            return _night(str(found.dev), package)
        why = "is a build of some commit after a release, and does not say of which"
        return Useless(why, "give the whole version, with its +g and the SHA, or the SHA itself")
    return Release(Version(found.public) if local else found, package)


def _of_image(written: str) -> Form | None:
    if _DIGEST.fullmatch(written) and _IMAGE.fullmatch(written) is None:
        return Useless("names an image by its digest, which tells no commit", "give the commit that it was built from")
    found = _IMAGE.fullmatch(written)
    if found is None or written.startswith("refs/"):
        return None
    return _of_tag(found[2], found[1])


def _of_tag(tag: str, image: str) -> Form | None:
    shas = {sha for sha in _IN_TAG.findall(tag) if len(sha) == 40 or not sha.isdigit()}
    if len(shas) == 1:
        return Sha(shas.pop(), f"the tag of the image {image}")
    if (version := _VERSION_IN_TAG.search(tag)) is not None:
        return _version(version[1], None)
    if (day := _DAY_IN_TAG.search(tag)) is not None:
        return _night(day[1] + day[2] + day[3], None)
    if tag in ("latest", "nightly", "main", "dev", "stable") or "/" in image:
        return Useless(
            f"is an image whose tag {tag} names no commit", "give the commit that it was built from, or its day"
        )
    return None


def deadline(until: Until, at: datetime | None) -> datetime | None:
    """The last moment that counts: nothing after `at`, when the question was asked. None: `at` is needed, or it lies
    before the calendar's beginning."""
    when = until.when
    if isinstance(when, Ago):
        return _before(at, when) if at is not None else None
    last = when if isinstance(when, datetime) else datetime.combine(when, time(23, 59, 59), UTC)
    return last if at is None else min(last, at)


def _before(at: datetime, ago: Ago) -> datetime | None:
    try:
        if ago.unit in ("month", "year"):
            months = at.year * 12 + at.month - 1 - ago.count * (12 if ago.unit == "year" else 1)
            first = at.replace(year=months // 12, month=months % 12 + 1, day=1)
            following = (first + timedelta(days=32)).replace(day=1)
            return min(first + timedelta(days=at.day - 1), following - timedelta(days=1))
        return at - timedelta(**{f"{ago.unit}s": ago.count})
    except (ValueError, OverflowError):
        return None
