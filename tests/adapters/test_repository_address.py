"""Which addresses are taken, and that none shows a secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from service.adapters.git_history import GitHistory
from service.adapters.repository_address import check, mirror_name, shown
from service.domain.errors import RepositoryUnavailable

REMOTE = [
    "https://github.com/a/b",
    "https://github.com:8443/a/b.git/",
    "HTTPS://user:secret@host.example/a",
    "https://[::1]:8/a",
    "ssh://git@host.example:22/a/b.git",
    "git://host.example/a",
    "git@host.example:a/b.git",
    "git@[::1]:a/b.git",
    "org-123@github.com:/a/b.git",
]
LOCAL = ["/srv/git/a.git", "/srv/with blank/a", "file:///srv/a", "FILE:///srv/a"]
REFUSED = [
    "", " ", "-", "--upload-pack=touch /tmp/x", "-u", "http://github.com/a/b", "ftp://h/a", "ftps://h/a", "rsync://h/a",
    "ext::sh -c touch% /tmp/x", "ext::sh", "fd::3", "https::https://h/a", "git+ssh://h/a", "ssh+git://h/a", "s3://b/k",
    "javascript://h/a", "https://", "https:///a", "https://h", "https://h/", "https://-oProxyCommand=x/a",
    "ssh://-oProxyCommand=touch/a", "ssh://-l@h/a", "ssh://h:notaport/a", "https://h:99999/a", "git@-oProxyCommand=x:a",
    "-git@h:a", "git@h:-a", "git@h:", "h:a/b", "C:\\a", "a/b", "./a", "../a", "~/a", "github.com/a/b", "https://h/a\nb",
    "https://h/a\0", "/srv/a\nb", "/srv/a\0", "https://h/a b", "https://h/\ud800", "file://host/a", "file://a",
    "file:a", "https://h/" + "a" * 2000, "https://h x/a", "https://[::1/a", "https://[x]/a", "git@h@i:a",
]  # fmt: skip


@pytest.mark.parametrize("repo", REMOTE)
@pytest.mark.parametrize("allow_file", [True, False])
def test_remote_repositories_are_taken_everywhere(repo: str, allow_file: bool) -> None:
    check(repo, allow_file=allow_file)


@pytest.mark.parametrize("repo", LOCAL)
def test_local_repositories_are_taken_only_where_that_is_allowed(repo: str) -> None:
    check(repo, allow_file=True)
    with pytest.raises(RepositoryUnavailable, match="on the service's own disk"):
        check(repo, allow_file=False)


@pytest.mark.parametrize("repo", REFUSED)
@pytest.mark.parametrize("allow_file", [True, False])
def test_anything_else_is_refused_with_what_to_give_instead(repo: str, allow_file: bool) -> None:
    with pytest.raises(RepositoryUnavailable) as caught:
        check(repo, allow_file=allow_file)
    assert caught.value.field == "repo"
    assert "https://" in caught.value.advice


def test_a_plain_name_is_shown_as_a_path_where_folders_are_allowed() -> None:
    with pytest.raises(RepositoryUnavailable) as caught:
        check("calc", allow_file=True)
    assert "./calc from where that file is" in caught.value.advice
    with pytest.raises(RepositoryUnavailable) as caught:
        check("calc", allow_file=False)
    assert "./calc" not in caught.value.advice


@pytest.mark.parametrize(
    ("repo", "safe"),
    [
        ("https://ada:secret@h/a", "https://***@h/a"),
        ("https://secret@h/a", "https://***@h/a"),
        ("https://secret:x-oauth-basic@h:1/a@b", "https://***@h:1/a@b"),
        ("https://h/a", "https://h/a"),
        ("https://h/a@v1", "https://h/a@v1"),
        ("HTTPS://a:sec@ret@h/a", "HTTPS://***@h/a"),
        ("ssh://git:secret@h/a", "ssh://git:***@h/a"),
        ("ssh://git@h/a", "ssh://git@h/a"),
        ("git@h:a", "git@h:a"),
        ("fatal: 'https://ada:secret@h/a' and 'http://ada:secret@h'", "fatal: 'https://***@h/a' and 'http://***@h'"),
    ],
)
def test_a_password_is_not_shown(repo: str, safe: str) -> None:
    assert shown(repo) == safe


@pytest.mark.parametrize(
    "repo", ["http://ada:secret@h/a", "x://secret@h/a", "https://ada:secret@-h/a", "-https://a:secret@h/a"]
)
def test_an_address_that_is_refused_does_not_show_its_password_either(repo: str) -> None:
    with pytest.raises(RepositoryUnavailable) as caught:
        check(repo, allow_file=False)
    assert "secret" not in f"{caught.value} {caught.value.detail} {caught.value.value} {caught.value.advice}"


def test_the_name_of_a_mirror_is_readable_and_its_own() -> None:
    names = [mirror_name(repo) for repo in (*REMOTE, *LOCAL, "https://github.com/a/b/", "https://x@github.com/a/b")]
    assert len(set(names)) == len(names)
    assert mirror_name("https://github.com/vllm-project/vllm.git").startswith("vllm-project-vllm-")
    assert all("secret" not in name for name in names)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
@example("..")
@example("/")
def test_the_name_of_a_mirror_is_one_plain_folder_whatever_the_address(repo: str) -> None:
    name = mirror_name(repo.encode("utf-8", "replace").decode())
    assert name == Path(name).name
    assert name[0] not in ".-"
    assert name.isascii()
    assert len(name) < 80


PARTS = [
    "-",
    "--upload-pack=touch x",
    "https:",
    "//",
    "/",
    "ext::",
    "sh",
    "git@",
    "h",
    ":",
    "file:",
    "%00",
    "@",
    " ",
    "\0",
    "\n",
    "..",
]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=30) | st.lists(st.sampled_from(PARTS), max_size=6).map("".join))
def test_no_address_does_anything_but_be_refused(tmp_path: Path, repo: str) -> None:
    """None of these can name a repository: only local and remote ones that do not exist come through the check."""
    mirrors = tmp_path / "mirrors"
    history = GitHistory(mirrors, allow_file=False, ssh="false")
    if repo.lower().startswith(("https://", "git@")):
        return
    with pytest.raises(RepositoryUnavailable):
        history.refresh(repo)
    assert [path.name for path in tmp_path.iterdir()] == ["mirrors"]
    assert sorted(path.name for path in mirrors.iterdir()) == ["gitattributes", "gitconfig"]
