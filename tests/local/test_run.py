"""firstbad run as people type it, in real repositories."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.local.conftest import CHECK, FIRST_BAD, MANY, Checkout, answer, history, state, tried
from tests.local.terminal import FIRSTBAD, Terminal
from tests.repositories import QUIET, NewCommit, build_repository, git


def test_the_first_bad_commit_is_named_in_git_s_words_with_its_log_and_what_failed(checkout: Checkout) -> None:
    script = checkout.script(CHECK)
    result = checkout.run("--good", checkout.shas[0], "--", script)
    assert result.status == 0
    assert f"{checkout.shas[FIRST_BAD]} is the first bad commit" in result.out
    assert "ValueError: 7 is too large" in result.out
    log = next(line.split()[1] for line in result.out.splitlines() if line.startswith("  log"))
    assert Path(log).read_text() == "ValueError: 7 is too large\n"


@pytest.mark.parametrize("jobs", ["1", "2", "5"])
def test_the_user_s_checkout_index_refs_and_configuration_are_not_touched(checkout: Checkout, jobs: str) -> None:
    script = checkout.script("git checkout -q -b mine; git tag spoilt; git config a.b c; git stash -q\n" + CHECK)
    (checkout.path / "number").write_text("what the user is at\n")
    git(checkout.path, "add", "number")
    before = state(checkout.path)
    told = checkout.found("-j", jobs, "--good", checkout.shas[0], "--", script)
    assert answer(told) == [checkout.shas[FIRST_BAD]]
    assert state(checkout.path) == before
    assert not checkout.left()


def test_a_range_is_both_ends_and_bad_is_head_where_it_is_not_said(checkout: Checkout) -> None:
    script = checkout.script(CHECK)
    for ends in ([f"{checkout.shas[2]}..{checkout.shas[9]}"], [f"{checkout.shas[2]}.."], ["--good", checkout.shas[2]]):
        told = checkout.found(*ends, "--", script)
        assert answer(told) == [checkout.shas[FIRST_BAD]]
        assert told["bad"] == [checkout.shas[9 if ends[0].endswith(checkout.shas[9]) else MANY - 1]]


def test_a_script_above_the_folder_is_no_range(checkout: Checkout) -> None:
    checkout.script(CHECK.replace("cat number", "cat ../number"))
    assert answer(checkout.found("--good", checkout.shas[0], "--", "../check.sh", folder="docs")) == [
        checkout.shas[FIRST_BAD]
    ]


def test_git_replays_what_was_found_to_the_same_answer(checkout: Checkout) -> None:
    told = checkout.found("-j", "3", "--good", checkout.shas[0], "--", checkout.script(CHECK))
    done = subprocess.run(
        ["git", "-C", checkout.path, "bisect", "replay", f"{told['folder']}/bisect.log"],
        capture_output=True,
        text=True,
        env=QUIET,
    )
    assert f"{checkout.shas[FIRST_BAD]} is the first bad commit" in done.stdout


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 0", "said to be bad, is good"),
        ("exit 1", "said to be good, is bad"),
        ("grep -q 0 number", ""),
        (f"test $(cat number) -ge {FIRST_BAD}", "the ends are swapped"),
        ("exit 125", "cannot be tested"),
        ("no-such-command", "could not be run"),
    ],
)
def test_ends_that_are_not_as_they_are_said_to_be_are_refused(checkout: Checkout, script: str, said: str) -> None:
    result = checkout.run("-j", "2", "--good", checkout.shas[0], "--", "sh", "-c", script)
    assert result.status == (2 if said else 0)
    assert said in result.err
    if said:
        assert len(result.err.splitlines()) >= 2, "no advice"


def test_skipped_commits_that_hide_the_answer_leave_suspects_and_status_1(checkout: Checkout) -> None:
    script = checkout.script("case $(cat number) in 6|7) exit 125; esac\n" + CHECK)
    result = checkout.run("--good", checkout.shas[0], "--", script)
    assert result.status == 1
    assert all(checkout.shas[n] in result.out for n in (6, 7, 8))
    assert checkout.shas[9] not in result.out


def test_what_cannot_be_tested_counts_as_bad_when_that_is_asked_for(checkout: Checkout) -> None:
    script = checkout.script("case $(cat number) in 6|7) exit 125; esac\n" + CHECK)
    told = checkout.found("--skip-is", "bad", "--good", checkout.shas[0], "--", script)
    assert answer(told) == [checkout.shas[6]]


def test_a_run_out_of_time_is_skipped_and_bad_when_that_is_the_failure(checkout: Checkout) -> None:
    script = checkout.script(f"test $(cat number) -lt {FIRST_BAD} || sleep 60\n")
    ends = ("-j", "4", "--timeout", "1s", "--good", checkout.shas[0], "--", script)
    refused = checkout.run(*ends)
    assert refused.status == 2
    assert "ran out of time" in refused.err
    assert answer(checkout.found("--timeout-is-bad", *ends)) == [checkout.shas[FIRST_BAD]]


def test_death_by_a_signal_and_statuses_above_128_are_bad(checkout: Checkout) -> None:
    for ending in ("kill -SEGV $$", "exit 139", "exit 255"):
        script = checkout.script(f"test $(cat number) -lt {FIRST_BAD} || {ending}\n")
        assert answer(checkout.found("--good", checkout.shas[0], "--", script)) == [checkout.shas[FIRST_BAD]]


def test_another_failure_counts_with_a_warning_and_is_skipped_with_same_failure(checkout: Checkout) -> None:
    other = 'test $(cat number) != 5 || { echo "KeyError: some other thing"; exit 1; }\n'
    script = checkout.script(f"{CHECK}{other}")
    ends = ("--good", checkout.shas[3], "--", script)
    told = checkout.found(*ends)
    assert answer(told) == [checkout.shas[5]]
    noted = [probe["note"] for probe in told["probes"] if probe["note"]]
    assert noted and "another failure" in noted[0] and "too large" in noted[0]
    assert answer(checkout.found("--same-failure", *ends)) == [checkout.shas[FIRST_BAD]]


def test_verdicts_that_no_commit_explains_are_told_and_which_they_are(checkout: Checkout) -> None:
    """The commit after a bad one is good: with several at once both are seen."""
    script = checkout.script("case $(cat number) in 0|5|6|7|8) ;; *) exit 1;; esac\n")
    result = checkout.run("-j", "9", "--good", checkout.shas[0], "--", script)
    assert result.status == 1
    assert "No one commit explains" in result.out and "--flaky" in result.out


def test_the_fix_is_found_when_the_older_end_is_bad(checkout: Checkout) -> None:
    script = checkout.script(f"test $(cat number) -ge {FIRST_BAD}\n")
    told = checkout.found("--find-fix", f"{checkout.shas[0]}..", "--", script)
    assert answer(told) == [checkout.shas[FIRST_BAD]]
    assert told["answer"]["what"] == "first fixed commit"
    replayed = git(checkout.path, "bisect", "replay", f"{told['folder']}/bisect.log")
    assert f"{checkout.shas[FIRST_BAD]} is the first fixed commit" in replayed


def test_a_flaky_failure_is_tried_until_the_answer_is_sure_enough(checkout: Checkout, tmp_path: Path) -> None:
    """The first run of each bad commit passes, and then each third."""
    script = checkout.script(
        f"n=$(cat number); test $n -ge {FIRST_BAD} || exit 0\n"
        f"echo x >> {tmp_path}/count-$n; test $(($(wc -l < {tmp_path}/count-$n) % 3)) = 1 || exit 1\n"
    )
    told = checkout.found("--flaky", "--good", checkout.shas[0], "--", script)
    assert answer(told) == [checkout.shas[FIRST_BAD]]
    assert told["answer"]["confidence"] >= 0.95
    assert tried(told).count(checkout.shas[FIRST_BAD]) > 1


def test_files_that_git_does_not_have_lie_over_each_commit(checkout: Checkout) -> None:
    (checkout.path / "limit").mkdir()
    (checkout.path / "limit" / "value").write_text(f"{FIRST_BAD}\n")
    script = checkout.script('test "$(cat number)" -lt "$(cat limit/value)"\n', "tools/check")
    told = checkout.found("--with", "limit", "--good", checkout.shas[0], "--", "sh", script)
    assert answer(told) == [checkout.shas[FIRST_BAD]]
    refused = checkout.run("--with", "../elsewhere", "--good", checkout.shas[0], "--", script)
    assert refused.status == 2 and "no such thing" in refused.err


def test_a_script_that_git_has_is_that_of_each_commit(tmp_path: Path, terminal: Terminal) -> None:
    path = tmp_path / "project"
    commits = [NewCommit(files={"check": f"exit {int(n >= 4)}\n"}) for n in range(8)]
    checkout = Checkout(path, history(path, commits), terminal)
    assert answer(checkout.found("--good", checkout.shas[0], "--", "sh", "./check")) == [checkout.shas[4]]


def test_variables_reach_the_script_and_git_s_own_do_not(checkout: Checkout) -> None:
    script = checkout.script('test -z "$GIT_DIR$GIT_INDEX_FILE" || exit 125\ntest "$(cat number)" -lt "$LIMIT"\n')
    environment = {**checkout.terminal.env, "GIT_INDEX_FILE": str(checkout.path / ".git" / "index")}
    hooked = Checkout(checkout.path, checkout.shas, Terminal(checkout.path, environment))
    told = hooked.found("--env", "LIMIT=4", "--good", checkout.shas[0], "--", script)
    assert answer(told) == [checkout.shas[4]]
    assert checkout.run("--env", "LIMIT", "--good", checkout.shas[0], "--", script).status == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--", "true"], "no good commit"),
        (["--good", "nowhere", "--", "true"], "names no commit"),
        (["--good", "HEAD~3"], "no script"),
        (["--good", "HEAD", "--", "true"], "nothing is between them"),
        (["--good", "-x", "--", "true"], "not the name of one commit"),
        (["HEAD~3..HEAD", "--bad", "HEAD", "--", "true"], "both ends already"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_line_with_what_to_do(
    checkout: Checkout, arguments: list[str], said: str
) -> None:
    result = checkout.run(*arguments)
    assert result.status == 2
    assert said in result.err
    assert not checkout.runs()


def test_outside_a_repository_and_before_its_first_commit_it_says_so(tmp_path: Path, terminal: Terminal) -> None:
    outside = terminal.run("run", "--good", "HEAD", "--", "true")
    assert outside.status == 2 and "not a git repository" in outside.err
    git(tmp_path, "init", "--quiet", "unborn")
    unborn = Terminal(tmp_path / "unborn", terminal.env).run("run", "--good", "HEAD", "--", "true")
    assert unborn.status == 2 and "no commit yet" in unborn.err


def test_a_shallow_clone_says_what_to_fetch_only_where_the_range_is_cut(checkout: Checkout, tmp_path: Path) -> None:
    script = checkout.script(CHECK)
    clone = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth", "8", f"file://{checkout.path}", str(clone))
    shutil.copy(checkout.path / "check.sh", clone)
    cut = Checkout(clone, checkout.shas, checkout.terminal)
    refused = cut.run("--good", checkout.shas[0], "--", script)
    assert refused.status == 2
    assert "git fetch --unshallow" in refused.err
    assert answer(cut.found("--good", checkout.shas[4], "--", script)) == [checkout.shas[FIRST_BAD]]


def test_a_bare_repository_a_linked_work_tree_and_a_signed_like_tag_will_do(checkout: Checkout, tmp_path: Path) -> None:
    git(checkout.path, "tag", "-a", "-m", "a release", "v1", checkout.shas[1])
    bare, linked = tmp_path / "bare.git", tmp_path / "linked"
    git(tmp_path, "clone", "--quiet", "--bare", str(checkout.path), str(bare))
    git(checkout.path, "worktree", "add", "--quiet", "--detach", str(linked), checkout.shas[9])
    for place in (bare, linked):
        there = Checkout(place, checkout.shas, checkout.terminal)
        told = there.found("--good", "v1", "--", there.script(CHECK))
        assert answer(told) == [checkout.shas[FIRST_BAD]]
        assert told["bad"] == [checkout.shas[9 if place == linked else MANY - 1]]


@pytest.mark.parametrize("name", ["with blanks", '-quo"te\nümlaut'])
def test_a_repository_may_be_called_anything(tmp_path: Path, terminal: Terminal, name: str) -> None:
    path = tmp_path / name
    checkout = Checkout(path, history(path), terminal)
    assert answer(checkout.found("-j", "2", "--good", checkout.shas[0], "--", checkout.script(CHECK))) == [
        checkout.shas[FIRST_BAD]
    ]


def test_a_sha256_repository_will_do(tmp_path: Path, terminal: Terminal) -> None:
    path = tmp_path / "project"
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "--initial-branch=main", str(path))
    for n in range(4):
        (path / "number").write_text(f"{n}\n")
        git(path, "add", "number")
        git(path, "commit", "--quiet", "--message", f"change {n}")
    checkout = Checkout(path, (), terminal)
    told = checkout.found("--good", "HEAD~3", "--", "sh", "-c", "test $(cat number) -lt 2")
    assert answer(told) == [git(path, "rev-parse", "HEAD~1")]


def test_a_sparse_checkout_is_as_sparse_at_each_commit(checkout: Checkout) -> None:
    git(checkout.path, "sparse-checkout", "set", "--no-cone", "/number")
    script = checkout.script(f"test ! -e docs || exit 125\n{CHECK}")
    assert answer(checkout.found("--good", checkout.shas[0], "--", script)) == [checkout.shas[FIRST_BAD]]


def test_commits_that_a_partial_clone_lacks_are_fetched(checkout: Checkout, tmp_path: Path) -> None:
    git(checkout.path, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", "--no-checkout", f"file://{checkout.path}", str(clone))
    there = Checkout(clone, checkout.shas, checkout.terminal)
    script = ("sh", "-c", f"test $(cat number) -lt {FIRST_BAD}")
    assert answer(there.found("--good", checkout.shas[0], "--", *script)) == [checkout.shas[FIRST_BAD]]


def test_of_several_goods_and_a_line_of_first_parents_only_what_is_between_is_tried(
    tmp_path: Path, terminal: Terminal
) -> None:
    path = tmp_path / "project"
    numbers = [0, 1, 2, 9, 9, 3, 4]
    parents = [[], [0], [1], [1], [3], [2, 4], [5]]
    commits = [NewCommit(parents=p, files={"number": f"{n}\n"}) for n, p in zip(numbers, parents, strict=True)]
    checkout = Checkout(path, history(path, commits), terminal)
    script = ("sh", "-c", "test $(cat number) -lt 3")
    told = checkout.found("--first-parent", "--good", checkout.shas[0], "--", *script)
    assert answer(told) == [checkout.shas[5]]
    assert not {checkout.shas[3], checkout.shas[4]} & {*tried(told)}
    told = checkout.found("--good", checkout.shas[2], "--good", checkout.shas[1], "--", *script)
    assert checkout.shas[1] in tried(told) and checkout.shas[2] in tried(told)
    assert answer(told) == [checkout.shas[3]]


@pytest.mark.parametrize(("clean", "left"), [("keep", 1), ("untracked", 1), ("ignored", 0), ("fresh", 0)])
def test_what_one_commit_leaves_is_there_for_the_next_as_far_as_it_is_asked_for(
    checkout: Checkout, tmp_path: Path, clean: str, left: int
) -> None:
    (checkout.path / ".git" / "info" / "exclude").write_text("built\n")
    seen = f"test -e built && echo built >> {tmp_path}/seen; test -e loose && echo loose >> {tmp_path}/seen\n"
    script = checkout.script(f"{seen}touch built loose\n{CHECK}")
    checkout.found("--clean", clean, "--good", checkout.shas[0], "--", script)
    seen_by_others = (tmp_path / "seen").read_text().split() if (tmp_path / "seen").exists() else []
    assert ("built" in seen_by_others) == bool(left)
    assert ("loose" in seen_by_others) == (clean == "keep")


def test_submodules_that_the_user_has_are_at_each_commit_s_version(tmp_path: Path, terminal: Terminal) -> None:
    part, path = tmp_path / "part", tmp_path / "project"
    parts = build_repository(part, [NewCommit(files={"value": f"{n}\n"}) for n in range(6)])
    git(tmp_path, "init", "--quiet", "--initial-branch=main", str(path))
    git(path, "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(part), "lib/part")
    for sha in parts:
        git(path / "lib/part", "checkout", "--quiet", sha)
        git(path, "add", "--all")
        git(path, "commit", "--quiet", "--message", "moves the part")
    shutil.rmtree(part)
    checkout = Checkout(path, (), terminal)
    told = checkout.found("-j", "2", "--good", "HEAD~5", "--", "sh", "-c", "test $(cat lib/part/value) -lt 3")
    assert answer(told) == [git(path, "rev-parse", "HEAD~2")]


def test_a_good_that_is_no_ancestor_has_its_merge_base_tried(tmp_path: Path, terminal: Terminal) -> None:
    path = tmp_path / "project"
    numbers = [0, 1, 2, 3, 4, 5]
    commits = [NewCommit(files={"number": f"{n}\n"}) for n in numbers]
    commits += [NewCommit(parents=[1], files={"number": "1\n"}), NewCommit(parents=[5], files={"number": "6\n"})]
    checkout = Checkout(path, history(path, commits), terminal)
    told = checkout.found("--good", checkout.shas[6], "--", "sh", "-c", "test $(cat number) -lt 4")
    assert answer(told) == [checkout.shas[4]]
    assert told["merge_bases"] == [checkout.shas[1]]
    assert checkout.shas[1] in tried(told)


def test_a_merge_base_that_fails_is_refused_as_git_does(tmp_path: Path, terminal: Terminal) -> None:
    path = tmp_path / "project"
    commits = [
        NewCommit(),
        NewCommit(),
        NewCommit(),
        NewCommit(parents=[1], files={"mended": ""}),
        NewCommit(parents=[2]),
    ]
    checkout = Checkout(path, history(path, commits), terminal)
    refused = checkout.run("--good", checkout.shas[3], "--", "test", "-e", "mended")
    assert refused.status == 2
    assert f"the merge base {checkout.shas[1][:12]} is bad" in refused.err


def test_in_a_terminal_the_range_narrows_before_the_reader_s_eyes_and_elsewhere_lines_are_plain(
    checkout: Checkout,
) -> None:
    script = checkout.script(CHECK)
    plain = checkout.run("--good", checkout.shas[0], "--", script)
    assert "\x1b" not in plain.out and "candidates left" in plain.out and "to come in" in plain.out
    typed = shlex.join([str(FIRSTBAD), "run", "--again", "--good", checkout.shas[0], "--", script])
    shown = subprocess.run(
        ["script", "--quiet", "--return", "--command", f"stty cols 90; {typed}", "/dev/null"],
        cwd=checkout.path,
        env={**os.environ, **checkout.terminal.env, "TERM": "xterm-256color"},
        capture_output=True,
    )
    assert shown.returncode == 0
    assert b"\xe2\x94\x81" in shown.stdout and b"candidates left" in shown.stdout, "no bar"
    assert f"{checkout.shas[FIRST_BAD]} is the first bad commit".encode() in shown.stdout


def test_what_the_json_of_a_run_says_is_kept_beside_its_logs(checkout: Checkout) -> None:
    told = checkout.found("-j", "2", "--good", checkout.shas[0], "--", checkout.script(CHECK))
    folder = Path(told["folder"])
    assert json.loads((folder / "run.json").read_text()) == told
    lines = [json.loads(line) for line in (folder / "probes.jsonl").read_text().splitlines()]
    assert sorted(line["sha"] for line in lines) == sorted(tried(told))
    assert all((folder / line["log"]).exists() and line["verdict"] in ("good", "bad") for line in lines)
