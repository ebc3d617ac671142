"""firstbad run --container: the work tree at its own place, as the user, and no container left."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from tests.local.conftest import CHECK, FIRST_BAD, Checkout, answer
from tests.waiting import eventually


def containers(checkout: Checkout) -> list[str]:
    names = [run.name for run in checkout.runs()]
    listed = [
        subprocess.run(
            ["docker", "ps", "--all", "--quiet", "--filter", f"label=firstbad.run={name}"],
            capture_output=True,
            text=True,
        ).stdout.split()
        for name in names
    ]
    return [one for some in listed for one in some]


def test_a_container_sees_the_commit_its_history_and_who_the_user_is(checkout: Checkout, docker_image: str) -> None:
    script = checkout.script(
        f"id -u >who; touch $HOME/mine || exit 125; test -e /sys/class/net/eth0 && exit 125\n{CHECK}"
    )
    told = checkout.found("-j", "2", "--container", docker_image, "--good", checkout.shas[0], "--", script)
    assert answer(told) == [checkout.shas[FIRST_BAD]]
    assert not containers(checkout) and not checkout.left()


def test_an_error_of_docker_s_own_is_no_skip(checkout: Checkout, docker_image: str) -> None:
    missing = checkout.run("--container", "no-such-image:1", "--good", checkout.shas[0], "--", "true")
    assert missing.status == 2 and "docker pull no-such-image:1" in missing.err
    network = checkout.run(
        "--container", docker_image, "--network", "nowhere", "--good", checkout.shas[0], "--", "true"
    )
    assert network.status == 3 and "nowhere" in network.err
    command = checkout.run("--container", docker_image, "--good", checkout.shas[0], "--", "no-such-command")
    assert command.status == 2 and "could not be run" in command.err
    assert not containers(checkout)


def test_a_time_out_and_an_interruption_end_the_container(
    checkout: Checkout, docker_image: str, tmp_path: Path
) -> None:
    slow = checkout.script(f"test $(cat number) -lt {FIRST_BAD} || sleep 300\n")
    ends = ("-j", "4", "--container", docker_image, "--good", checkout.shas[0], "--", slow)
    told = checkout.found("--timeout", "3s", "--timeout-is-bad", *ends)
    assert answer(told) == [checkout.shas[FIRST_BAD]]
    assert not containers(checkout)
    process = checkout.start(*ends)
    eventually(lambda: containers(checkout))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not containers(checkout)


def test_killed_it_leaves_no_container_running(checkout: Checkout, docker_image: str) -> None:
    ends = ("--container", docker_image, "--good", checkout.shas[0], "--", "sleep", "300")
    process = checkout.start(*ends)
    eventually(lambda: containers(checkout))
    process.kill()
    process.communicate(timeout=60)
    checkout.found("--good", checkout.shas[0], "--", "sh", "-c", f"test $(cat number) -lt {FIRST_BAD}")
    eventually(lambda: not containers(checkout), 20)


def test_a_kill_for_want_of_memory_is_a_skip(checkout: Checkout, docker_image: str) -> None:
    """Of a process of the script's, by the system: the exit status alone could mean anything."""
    greedy = f"docker run --rm --memory 32m --network none {docker_image} python3 -c 'b\"x\" * (300 << 20)'"
    script = checkout.script(f"test $(cat number) != 6 || {{ {greedy}; exit $?; }}\n{CHECK}")
    told = checkout.found(f"{checkout.shas[4]}..{checkout.shas[8]}", "--skip-is", "good", "--", script)
    assert answer(told) == [checkout.shas[FIRST_BAD]]
    assert [probe["reason"] for probe in told["probes"] if probe["sha"] == checkout.shas[6]] == [
        "killed for want of memory in script; counted as good"
    ]
