"""Scripts that misbehave, and runs that are cut off: nothing of them is left, and the answer is the same."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.local.conftest import CHECK, FIRST_BAD, Checkout, answer, processes_in, state, tried
from tests.local.terminal import FIRSTBAD
from tests.repositories import QUIET
from tests.waiting import eventually

#: What a script may do before it tells the truth.
ATTACKS = {
    "kills its group": f"test $(cat number) -lt {FIRST_BAD} || kill -KILL 0\n",
    "deletes its work tree": CHECK.replace("test", 'rm -rf "$PWD"; test', 1),
    "deletes its repository": CHECK.replace("test", "rm -rf .git; test", 1),
    "changes the branch and commits": CHECK.replace(
        "test", "git checkout -q -B main; echo x >> number; git -c user.name=a -c user.email=a@b commit -qam x; test", 1
    ),
    "holds git's locks": "touch .git/index.lock .git/HEAD.lock\n" + CHECK,
    "takes the rights to its files": CHECK.replace("test", "mkdir -p deep/er; chmod 000 deep/er deep; test", 1),
    "makes folders of files": CHECK.replace(
        "test", "rm -rf docs number; mkdir -p docs number/x; touch docs/x; test", 1
    ),
    "leads out by links": CHECK.replace(
        "test", "rm -rf docs; ln -s / docs; rm check.sh; ln -s /etc/hosts check.sh; test", 1
    ),
    "edits tracked files and config": CHECK.replace("test", "echo 99 > number; git config core.bare true; test", 1),
    "leaves a merge": CHECK.replace(
        "test", "git merge -q --no-commit --no-ff -s ours $(git rev-list -n 1 main); test", 1
    ),
}


@pytest.mark.parametrize("attack", list(ATTACKS))
def test_a_script_that_spoils_its_work_tree_changes_no_answer(checkout: Checkout, attack: str) -> None:
    script = checkout.script(ATTACKS[attack])
    before = state(checkout.path)
    told = checkout.found("--good", checkout.shas[0], "--", script)
    assert answer(told) == [checkout.shas[FIRST_BAD]]
    assert state(checkout.path) == before
    assert not checkout.left()
    assert Path("/etc/hosts").exists()


def test_daemons_end_with_the_probe_that_started_them(checkout: Checkout) -> None:
    daemon = "setsid sh -c 'trap \"\" TERM HUP; sleep 300 & wait' >/dev/null 2>&1 </dev/null &\n(sleep 300 &)\n"
    told = checkout.found("--good", checkout.shas[0], "--", checkout.script(daemon + CHECK))
    assert answer(told) == [checkout.shas[FIRST_BAD]]
    assert not processes_in(checkout.home)


def test_a_script_that_kills_what_started_it_is_skipped_and_leaves_nothing(checkout: Checkout) -> None:
    """The keeper is its parent."""
    script = checkout.script("case $(cat number) in 5) sleep 300 & kill -9 $PPID; sleep 300;; esac\n" + CHECK)
    told = checkout.found("--good", checkout.shas[0], "--", script)
    assert answer(told) == [checkout.shas[FIRST_BAD]]
    assert [probe["verdict"] for probe in told["probes"] if probe["sha"] == checkout.shas[5]] == ["skip"]
    assert not processes_in(checkout.home)


def test_a_gigabyte_of_output_leaves_a_log_within_its_limit_with_both_its_ends(checkout: Checkout) -> None:
    script = checkout.script("echo begins; head -c 1000000000 /dev/zero; echo; echo ends\n" + CHECK)
    told = checkout.found("--log-limit", "64KiB", f"{checkout.shas[6]}..{checkout.shas[7]}", "--", script)
    assert answer(told) == [checkout.shas[FIRST_BAD]]
    for log in Path(told["folder"]).glob("logs/*"):
        text = log.read_bytes()
        assert len(text) < 140_000
        assert text.startswith(b"begins") and b"ends\n" in text and b"bytes left out" in text


def test_a_log_that_cannot_be_written_fails_the_run_and_leaves_nothing(checkout: Checkout) -> None:
    """As on a full disk: no file may grow beyond a limit."""
    script = checkout.script("(setsid sleep 300 &); head -c 1000000 /dev/zero\n" + CHECK)
    ends = ["run", "--good", checkout.shas[0], "--", script]
    done = subprocess.run(
        ["prlimit", "--fsize=200000", FIRSTBAD, *ends],
        cwd=checkout.path,
        env={**os.environ, **checkout.terminal.env},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert "too large" in done.stderr and "goes on where it was" in done.stderr
    assert not processes_in(checkout.home) and not checkout.left()


def test_python_s_bytecode_of_another_commit_is_not_taken_for_this_one_s(checkout: Checkout) -> None:
    """Same size, same second."""
    script = checkout.script(
        "python3 -c \"import json,sys; sys.path.insert(0, '.'); import mod; sys.exit(mod.VALUE >= 7)\""
    )
    told = checkout.run("--good", checkout.shas[0], "--", script)
    assert told.status == 2, "there is no module yet"
    subprocess.run(
        [
            "sh",
            "-c",
            "for n in 1 2 3 4 5 6 7 8 9; do echo VALUE = $n > mod.py; git add mod.py; git commit -qm $n; done",
        ],
        cwd=checkout.path,
        env=QUIET,
        check=True,
    )
    found = checkout.found("HEAD~8..HEAD", "--", script)
    assert found["answer"]["commits"][0]["subject"] == "7"


def _waiting_script(checkout: Checkout, tmp_path: Path) -> str:
    """Waits at the commits between the ends, until it is let go."""
    waits = (
        f"case $(cat number) in 0|11) ;; *) test -e {tmp_path}/go || {{ touch {tmp_path}/waits; sleep 300; }};; esac\n"
    )
    return checkout.script(waits + CHECK)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_interrupted_it_ends_what_runs_and_goes_on_later_with_the_verdicts_that_it_has(
    checkout: Checkout, tmp_path: Path, number: signal.Signals
) -> None:
    script = _waiting_script(checkout, tmp_path)
    ends = ("-j", "2", "--good", checkout.shas[0], "--", script)
    process = checkout.start(*ends)
    eventually((tmp_path / "waits").exists)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"goes on where it was" in err
    assert not processes_in(checkout.home) and not checkout.left()
    (tmp_path / "go").touch()
    with (checkout.runs()[0] / "probes.jsonl").open("a") as lines:
        lines.write('{"number": 9, "sha": "cut off by a cra')
    told = checkout.found(*ends)
    assert answer(told) == [checkout.shas[FIRST_BAD]]
    assert len(checkout.runs()) == 1
    assert tried(told).count(checkout.shas[0]) == 1, "the ends were tried again"
    anew = checkout.found("--again", *ends)
    assert anew["folder"] != told["folder"]
    assert checkout.found(*ends)["folder"] not in (anew["folder"], told["folder"]), "a run that was over has gone on"


def test_killed_it_leaves_no_processes_and_the_next_run_takes_its_trees_away(
    checkout: Checkout, tmp_path: Path
) -> None:
    script = _waiting_script(checkout, tmp_path)
    process = checkout.start("-j", "2", "--good", checkout.shas[0], "--", script)
    eventually((tmp_path / "waits").exists)
    process.kill()
    process.communicate(timeout=60)
    eventually(lambda: not processes_in(checkout.home), 20)
    assert checkout.left()
    (tmp_path / "go").touch()
    other = checkout.found("--good", checkout.shas[1], "--", script)
    assert answer(other) == [checkout.shas[FIRST_BAD]]
    assert not checkout.left()
    again = checkout.found("-j", "2", "--good", checkout.shas[0], "--", script)
    assert answer(again) == [checkout.shas[FIRST_BAD]]
    assert len(checkout.runs()) == 2, "it has not gone on in its own folder"


def test_the_same_run_twice_at_once_is_refused_and_another_one_is_not(checkout: Checkout, tmp_path: Path) -> None:
    script = _waiting_script(checkout, tmp_path)
    ends = ("--good", checkout.shas[0], "--", script)
    process = checkout.start(*ends)
    try:
        eventually((tmp_path / "waits").exists)
        refused = checkout.run(*ends)
        assert refused.status == 2 and "under way" in refused.err
        other = checkout.found("--good", checkout.shas[1], "--", "sh", "-c", f"test $(cat number) -lt {FIRST_BAD}")
        assert answer(other) == [checkout.shas[FIRST_BAD]]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_verdicts_of_another_script_are_not_gone_on_with(checkout: Checkout, tmp_path: Path) -> None:
    script = _waiting_script(checkout, tmp_path)
    ends = ("--good", checkout.shas[0], "--", script)
    process = checkout.start(*ends)
    eventually((tmp_path / "waits").exists)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    checkout.script("test $(cat number) -lt 3\n")
    assert answer(checkout.found(*ends)) == [checkout.shas[3]]
    assert len(checkout.runs()) == 2
