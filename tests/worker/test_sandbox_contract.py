"""What every sandbox promises, held by each of them."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import socket
from pathlib import Path

import pytest

from tests.waiting import eventually
from tests.worker.bench import SERVER, Background, Bench, running, values_of
from worker.contract import Metric, Serve
from worker.pipeline import Pipeline
from worker.run import job as jobs
from worker.run.stop import CANCELLED, STOPPED, Stop


@pytest.mark.parametrize("status", [0, 1, 2, 124, 125, 126, 127, 255])
def test_the_exit_status_is_the_scripts_own(bench: Bench, status: int) -> None:
    outcome = bench.outcome(f"exit {status}")
    assert (outcome.exit_status, outcome.signal, outcome.ended_in) == (status, None, "script")
    assert not outcome.timed_out


@pytest.mark.parametrize("number", [6, 9, 11, 15])
def test_death_by_a_signal_is_told_apart_from_an_exit(bench: Bench, number: int) -> None:
    outcome = bench.outcome(f"kill -{number} $$")
    assert (outcome.exit_status, outcome.signal) == (None, number)


def test_a_failing_command_ends_the_script(bench: Bench) -> None:
    outcome = bench.outcome("false\necho went on")
    assert outcome.exit_status == 1
    assert bench.text(outcome) == []


def test_a_pipe_does_not_swallow_an_exit_status(bench: Bench) -> None:
    outcome = bench.outcome("(echo broken; exit 7) | tee copy | cat\necho went on")
    assert outcome.exit_status == 7
    assert outcome.log.last_lines == ("broken",)


def test_the_script_runs_in_the_commits_own_tree(bench: Bench) -> None:
    # hello.txt has the attribute export-ignore, but a checkout would hold it.
    outcome = bench.outcome("cat hello.txt; test ! -e .git; echo x > hello.txt; ls")
    assert outcome.exit_status == 0
    assert bench.text(outcome)[0] == "hello"
    assert {"tinypkg.py", "pyproject.toml"} <= set(bench.text(outcome))


def test_the_orders_variables_are_set_and_the_workers_are_not(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRSTBAD_SECRET", "of the worker")
    outcome = bench.outcome("env", env={"COLOUR": "green with 'quotes' and $x"})
    assert "COLOUR=green with 'quotes' and $x" in bench.text(outcome)
    assert f"FIRSTBAD_COMMIT={bench.shas[0]}" in bench.text(outcome)
    assert not [line for line in bench.text(outcome) if "of the worker" in line]


def test_a_run_over_its_time_is_killed_whole(bench: Bench) -> None:
    marker = f"3600.{os.getpid()}1"
    outcome = bench.outcome(f"trap '' TERM INT\nsleep {marker} & sleep {marker}", limits={"timeout_s": 1.5})
    assert outcome.timed_out
    assert (outcome.exit_status, outcome.signal, outcome.ended_in) == (None, None, "script")
    assert running(marker) == []


def test_what_forks_away_neither_holds_the_run_up_nor_survives(bench: Bench) -> None:
    marker = f"3600.{os.getpid()}2"
    outcome = bench.outcome(f"setsid bash -c 'trap \"\" HUP TERM; sleep {marker}; true' & disown\necho done")
    assert outcome.exit_status == 0
    assert bench.text(outcome) == ["done"]
    assert running(marker) == []


def test_a_script_that_kills_all_it_can_is_still_answered(bench: Bench) -> None:
    outcome = bench.outcome(
        "kill -9 $PPID 1 || true; kill -STOP 1 || true; echo alive; sleep 60 & kill -9 -1 || true; exit 3"
    )
    assert outcome.exit_status == 3
    assert bench.text(outcome)[-1] == "alive"


def test_what_watches_over_the_run_cannot_be_traced(bench: Bench) -> None:
    attach = "import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))"
    outcome = bench.outcome(f"python3 -c '{attach}'; ls /proc/1/fd /proc/1/cwd/ || echo no", limits={"timeout_s": 20.0})
    assert bench.text(outcome)[0] == "-1"
    assert bench.text(outcome)[-1] == "no"


def test_output_is_kept_as_it_was_written(bench: Bench) -> None:
    outcome = bench.outcome(r"printf 'a\0b \xff\xfe \n\n  indented\r\nno end' >&2")
    assert b"a\0b \xff\xfe \n" in bench.log(outcome)
    assert outcome.log.last_lines == (
        "a\N{REPLACEMENT CHARACTER}b \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER} ",
        "",
        "  indented",
        "no end",
    )
    assert outcome.log.bytes == len(b"a\0b \xff\xfe \n\n  indented\r\nno end")
    assert not outcome.log.cut


def test_each_line_has_a_time_stamp(bench: Bench) -> None:
    outcome = bench.outcome("echo one; echo two; printf three")
    lines = bench.log(outcome).split(b"\n")
    assert lines.pop() == b""
    assert len(lines) == 3
    assert all(re.match(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \w+$", line) for line in lines)


def test_a_flood_is_kept_with_its_head_and_tail(bench: Bench) -> None:
    cap = 256 * 1024
    outcome = bench.outcome("seq 1 2000000", limits={"log_cap_bytes": cap})
    log, lines = bench.log(outcome), bench.text(outcome)
    assert outcome.log.cut
    assert outcome.log.bytes == len("".join(f"{number}\n" for number in range(1, 2_000_001)))
    assert len(log) <= cap + 200
    assert (lines[0], lines[-1]) == ("1", "2000000")
    left_out = next(line for line in lines if "left out" in line)
    kept = sum(len(line) + 1 for line in lines if line != left_out)
    assert int(re.findall(r"\d+", left_out)[0]) == outcome.log.bytes - kept


def test_the_failures_text_is_found_in_what_the_cap_leaves_out(bench: Bench) -> None:
    script = "seq 1 100000; echo '(EngineCore) ValueError: GDN only'; seq 1 200000"
    outcome = bench.outcome(script, failure="GDN only", limits={"log_cap_bytes": 65536})
    assert outcome.failure_seen == "(EngineCore) ValueError: GDN only"
    assert b"GDN only" not in bench.log(outcome)


def test_the_failures_text_is_not_found_where_it_is_not(bench: Bench) -> None:
    assert bench.outcome("echo fine", failure="GDN only").failure_seen is None


def test_nothing_outside_of_the_job_can_be_written(bench: Bench) -> None:
    places = (
        "/ /usr /etc /opt /dev /bin /var /home /root /proc/sys/kernel /firstbad /firstbad/in /firstbad/inside/inside"
    )
    outcome = bench.outcome(
        f"for place in {places}; do if touch $place/x 2>/dev/null; then echo wrote $place; fi; done"
    )
    assert outcome.exit_status == 0
    assert bench.text(outcome) == []


def test_its_own_folders_can_be_written(bench: Bench) -> None:
    outcome = bench.outcome("for place in . ~ /tmp /dev/shm $TMPDIR; do echo x > $place/x; done; mkfifo /tmp/pipe")
    assert outcome.exit_status == 0, bench.text(outcome)


def test_no_privilege_can_be_had_or_regained(bench: Bench) -> None:
    script = "id -u; grep -E 'CapEff|CapPrm|NoNewPrivs' /proc/self/status"
    lines = bench.text(bench.outcome(script))
    assert lines[0] == str(65534 if os.geteuid() == 0 else os.getuid())
    assert [line.split()[1] for line in lines[1:4]] == ["0" * 16, "0" * 16, "1"]


def test_neither_the_engine_nor_the_service_can_be_reached(bench: Bench) -> None:
    places = [
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/containerd",
        bench.pipeline.site.work_dir,
        bench.repository,
    ]
    script = f"for place in {' '.join(map(str, places))}; do if test -e $place; then echo saw $place; fi; done"
    assert bench.text(bench.outcome(script)) == []


def test_a_variable_of_the_order_shows_nothing_of_the_node(bench: Bench) -> None:
    here = Path(__file__)
    script = "for place in $FILE $FOLDER $SSL_CERT_FILE; do if test -e $place; then echo saw $place; fi; done"
    env = {"FILE": str(here), "FOLDER": str(here.parent), "SSL_CERT_FILE": str(here)}
    assert bench.text(bench.outcome(script, env=env, network="bridge")) == []


def test_a_file_that_the_node_passes_is_seen_with_a_network(bench: Bench) -> None:
    bench.pipeline = Pipeline(dataclasses.replace(bench.pipeline.site, files=(Path(__file__),)))
    script = f"head -c 20 {__file__}"
    assert bench.outcome(script, network="bridge").exit_status == 0
    assert bench.outcome(script).exit_status == 1


def test_the_nodes_network_cannot_be_reached(bench: Bench) -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        outcome = bench.outcome(
            f"if (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; then echo reached; fi; cat /proc/net/dev"
        )
    assert "reached" not in bench.text(outcome)
    names = [line.split(":")[0].strip() for line in bench.text(outcome) if ":" in line]
    assert names == ["lo"]


def test_other_processes_of_the_node_are_not_seen(bench: Bench) -> None:
    outcome = bench.outcome("cat /proc/[0-9]*/comm | sort | uniq")
    assert set(bench.text(outcome)) <= {"bash", "cat", "sort", "uniq", "python3", "python3.11"}


def test_a_server_is_awaited_checked_and_stopped(bench: Bench) -> None:
    outcome = bench.serve(check="python3 -c \"import urllib.request as r; print(r.urlopen('$FIRSTBAD_URL').status)\"")
    assert (outcome.exit_status, outcome.ready, outcome.ended_in) == (0, True, "check")
    assert outcome.log.last_lines[-1] == "200"
    assert [phase.name for phase in outcome.phases] == ["fetch", "start", "ready", "check"]
    assert outcome.environment["port"] == "8000"


def test_a_failing_check_is_told_apart_from_a_failing_server(bench: Bench) -> None:
    outcome = bench.serve(check="echo wrong answer; exit 4")
    assert (outcome.exit_status, outcome.ready, outcome.ended_in) == (4, True, "check")


def test_a_server_without_a_check_is_ready_and_that_is_all(bench: Bench) -> None:
    outcome = bench.serve()
    assert (outcome.exit_status, outcome.signal, outcome.ready, outcome.ended_in) == (None, None, True, "ready")
    assert not outcome.timed_out


def test_a_server_that_dies_ends_the_run_in_its_start(bench: Bench) -> None:
    outcome = bench.serve("echo loading; echo 'RuntimeError: boom' >&2; exit 9", check="true", failure="RuntimeError")
    assert (outcome.exit_status, outcome.ready, outcome.ended_in) == (9, False, "start")
    assert outcome.failure_seen == "RuntimeError: boom"
    assert [phase.name for phase in outcome.phases] == ["fetch", "start"]


def test_a_server_that_never_gets_ready_is_a_time_out_of_that_phase(bench: Bench) -> None:
    outcome = bench.serve("sleep 600", spec={"within_s": 1.0}, check="true")
    assert (outcome.timed_out, outcome.ready, outcome.ended_in, outcome.exit_status) == (True, False, "ready", None)


def test_a_server_that_answers_otherwise_is_not_ready(bench: Bench) -> None:
    outcome = bench.serve(spec={"within_s": 1.5, "ready_http": "/nowhere"})
    assert (outcome.timed_out, outcome.ready, outcome.ended_in) == (True, False, "ready")


@pytest.mark.parametrize("wanted", [r"startup (complete|done) in \d+ s", "startup complete in 3 s (really"])
def test_a_log_line_can_say_that_a_server_is_ready(bench: Bench, wanted: str) -> None:
    command = "echo INFO loading; echo 'INFO startup complete in 3 s (really)'; sleep 600"
    outcome = bench.serve(command, check="echo checked", spec={"ready_http": None, "ready_log": wanted})
    assert (outcome.exit_status, outcome.ready) == (0, True)


def test_a_check_that_waits_for_a_dead_server_is_not_waited_for(process_bench: Bench) -> None:
    server = f"{SERVER} & until test -e go; do sleep 0.05; done; echo 'RuntimeError: lost'; exit 7"
    outcome = process_bench.serve(server, check="touch go; sleep 600")
    assert (outcome.exit_status, outcome.ended_in, outcome.timed_out) == (7, "check", False)
    assert outcome.environment["server_ended"] == "exit status 7, signal None"
    assert process_bench.text(outcome)[-1].startswith("firstbad: the server has died")


def test_a_check_may_stop_its_server_and_go_on(process_bench: Bench) -> None:
    check = "kill $(cat pid); while kill -0 $(cat pid) 2>/dev/null; do sleep 0.05; done; echo went on; exit 3"
    outcome = process_bench.serve(f"echo $$ > pid; exec {SERVER}", check=check)
    assert (outcome.exit_status, outcome.ended_in) == (3, "check")


def test_a_servers_children_end_with_it(bench: Bench) -> None:
    marker = f"3600.{os.getpid()}3"
    outcome = bench.serve(f"(trap '' TERM; sleep {marker} & setsid sleep {marker} &); exec {SERVER}")
    assert outcome.ready is True
    assert running(marker) == []


def test_a_server_that_does_not_stop_when_it_is_told_to_is_killed(process_bench: Bench) -> None:
    marker = f"3600.{os.getpid()}6"
    outcome = process_bench.serve(f"trap '' TERM; sleep {marker} & exec {SERVER}")
    assert outcome.ready is True
    assert running(marker) == []


def test_two_servers_at_once_can_have_the_same_port(bench: Bench) -> None:
    check = "until test -e go; do sleep 0.05; done; python3 -c '" + FETCH + "'"
    servers = [
        bench.order(serve=Serve(command=f"echo {name} > me; {SERVER}", within_s=60, ready_http="/"), check=check)
        for name in ("first", "second")
    ]
    probes = [Background(bench, order) for order in servers]
    jobs = [bench.job(order.probe) for order in servers]
    # Both have written who they are once their servers run.
    eventually(lambda: all(b"GET / HTTP" in part for part in map(_log_of, jobs)))
    for job in jobs:
        (job / "work" / "tree" / "go").touch()
    found = [probe.finished() for probe in probes]
    assert [result.outcome.log.last_lines[-1] for result in found] == ["first", "second"]


FETCH = 'import urllib.request as r; print(r.urlopen("http://127.0.0.1:8000/me").read().decode().strip())'


def _log_of(job: Path) -> bytes:
    path = job / "out" / "log"
    return path.read_bytes() if path.exists() else b""


def test_a_cancelled_run_is_gone_and_reports_nothing(bench: Bench) -> None:
    marker = f"3600.{os.getpid()}4"
    probe = Background(bench, bench.order(f"trap '' TERM; setsid sleep {marker} & sleep {marker}"))
    eventually(lambda: len(running(marker)) == 2)
    probe.stop.press(CANCELLED)
    assert probe.finished(10.0) is None
    assert running(marker) == []
    assert bench.left() == []


def test_a_run_that_the_worker_stops_is_a_fault(bench: Bench) -> None:
    marker = f"3600.{os.getpid()}5"
    probe = Background(bench, bench.order(f"sleep {marker}"))
    eventually(lambda: running(marker))
    probe.stop.press(STOPPED)
    result = probe.finished(10.0)
    assert result is not None and result.fault is not None and result.fault.kind == "stopped"
    assert bench.left() == []


def test_what_was_stopped_before_it_began_does_not_begin(bench: Bench) -> None:
    stop = Stop()
    stop.press(STOPPED)
    assert bench.probe("echo ran", stop=stop).fault.kind == "stopped"


def test_many_processes_are_not_more_than_allowed(bench: Bench) -> None:
    begin = "subprocess.Popen(['sleep', '60']); print(number, flush=True)"
    script = f'python3 -c "import subprocess\nfor number in range(300): {begin}"'
    outcome = bench.outcome(script, limits={"pids": 64, "timeout_s": 60.0})
    text = bench.text(outcome)
    assert outcome.exit_status == 1 and "Resource temporarily unavailable" in text[-1]
    assert sum(line.isdigit() for line in text) < 64
    assert bench.outcome("echo the node lives").exit_status == 0


def test_too_much_memory_is_said_to_be_that(bench: Bench) -> None:
    script = "python3 -c 'x = bytearray(400_000_000); x[::4096] = b\"x\" * len(x[::4096]); print(len(x))'"
    outcome = bench.outcome(script, limits={"memory_bytes": 100_000_000})
    assert outcome.out_of_memory
    assert not bench.outcome("true", limits={"memory_bytes": 100_000_000}).out_of_memory


def test_a_built_wheel_is_installed_and_run(bench: Bench) -> None:
    built = bench.build()
    assert built.fault is None and built.wheel is not None, built
    script = "tinypkg; python3 -c 'import tinypkg; print(tinypkg.WHERE)'; ls -A"
    outcome = bench.outcome(script, wheel=built.wheel.path, wheel_sha256=built.wheel.sha256)
    assert outcome.exit_status == 0
    assert outcome.log.last_lines[-2] == "tinypkg says hello"
    assert "/work/venv/" in outcome.log.last_lines[-1]
    assert [phase.name for phase in outcome.phases] == ["fetch", "install", "script"]


def test_a_commit_that_does_not_build_is_a_failure_with_its_log(bench: Bench) -> None:
    built = bench.build(number=1)
    assert built.wheel is None and built.fault is None
    assert built.failure is not None and built.failure.ended_in == "build"
    assert built.failure.exit_status not in (0, None)
    assert any("nowhere" in line for line in built.failure.log.last_lines)
    assert built.log == built.failure.log


DEEP = """
import os
for _ in range(1500):
    os.mkdir("d"); os.chdir("d")
"""


def test_nothing_is_left_of_a_run(bench: Bench) -> None:
    bench.outcome("mkdir -p a/b; chmod 000 a; touch /tmp/-rf; python3 -c '" + DEEP + "'")
    assert bench.left() == []


def test_outputs_that_are_links_or_pipes_are_not_followed(bench: Bench) -> None:
    script = "cd /firstbad/out; rm -f log; ln -s /etc/hostname log; mkfifo log.1; ln -s /etc/passwd outcome.new; ls"
    result = bench.probe(script)
    text = bench.log(result.outcome) if result.outcome else b""
    assert b"root:" not in text
    assert bench.left() == []


def test_an_outcome_that_the_script_wrote_is_not_believed(bench: Bench) -> None:
    forged = (
        '{"exit_status": 0, "signal": null, "timed_out": false, "fault": null, "ended_in": "script", "ready": null,'
        ' "phases": [], "began": 0, "bytes": 0, "failure_seen": null, "facts": {}, "python": "3", "installed": {}}'
    )
    outcome = bench.outcome(f"cd /firstbad/out; rm outcome.new; echo '{forged}' > outcome.json; exit 3")
    assert (outcome.exit_status, outcome.ended_in) == (3, "script")


@pytest.mark.parametrize(
    "mess",
    [
        "rm -rf *",
        "rm -f outcome.new; mkdir -p outcome.new/x outcome.json/x said/x; chmod 0 said",
        "ln -sf /etc/passwd outcome.new; mkfifo said; ln -s nowhere outcome.json",
        "chmod 0 .",
    ],
)
def test_what_lies_in_the_outcomes_place_makes_no_failure_the_nodes(bench: Bench, mess: str) -> None:
    script = f"echo n=5; sleep 0; cd /firstbad/out; {mess}; exit 3"
    outcome = bench.outcome(script, metrics=(Metric(pattern=r"n=(\d)"),))
    assert (outcome.exit_status, outcome.ended_in, values_of(outcome)) == (3, "script", (5.0,))


@pytest.mark.parametrize("mess", ["mkdir -p log.1/x log.2/x log.bytes", "rm -f log*; mkfifo log.1 log.2 log.bytes"])
def test_what_lies_in_the_logs_place_makes_no_failure_the_nodes(process_bench: Bench, mess: str) -> None:
    script = f"cd /firstbad/out; {mess}; seq 1 200000; exit 3"
    outcome = process_bench.outcome(script, limits={"log_cap_bytes": 65536})
    assert (outcome.exit_status, outcome.ended_in) == (3, "script")


def test_only_what_our_own_code_writes_inside_is_a_fact(tmp_path: Path) -> None:
    inside = jobs.INSIDE
    written = {
        name for path in inside.glob("*.py") for name in re.findall(r"run\.facts\[\"(\w+)\"\] =", path.read_text())
    }
    assert written == jobs.INSIDE_FACTS
    facts = {"exit_status": 1, "signal": None, "timed_out": False, "fault": None, "ended_in": "script", "ready": None}
    facts |= {"phases": [], "began": 5.0, "bytes": 1, "failure_seen": None, "python": "3.11.2", "installed": {}}
    job = jobs.create(tmp_path, "a", None)
    text = json.dumps({**facts, "facts": {"port": "1", "gpu_held_by": "GPU 2 is held by pid 1", "node": "other"}})
    (job.out / "outcome.json").write_text(text)
    found = jobs.read_outcome(job)
    assert found is not None and found.facts == {"port": "1"}
    for began in (-1, 1e12, 1e300):
        (job.out / "outcome.json").write_text(json.dumps({**facts, "facts": {}, "began": began}))
        assert jobs.read_outcome(job) is None


def test_the_environment_is_told(bench: Bench) -> None:
    environment = bench.outcome("true").environment
    assert environment["sandbox"] == bench.sandbox.kind
    assert environment["node"] == bench.pipeline.site.node
    assert {"pid", "net", "mount", "ipc", "uts"} <= set(environment["isolation"].split(","))
    assert not {"pid", "net", "mount"} & set(environment["not_isolated"].split(","))
