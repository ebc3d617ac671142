"""What counts as the root of a log, rule by rule, in logs of a few lines."""

from __future__ import annotations

import pytest

from service.application.similar import same, similarity
from worker.observe.failures import Kind
from worker.observe.frames import Frame
from worker.observe.signature import Signature, signature


def raised(error: str, *frames: str, prefix: str = "") -> str:
    """A traceback; a frame is "file function"."""
    lines = ["Traceback (most recent call last):"]
    for frame in frames or ("/app/svc/a.py f",):
        path, function = frame.split(" ")
        lines += [f'  File "{path}", line 7, in {function}', "    x = g(y)"]
    return "\n".join(prefix + line for line in [*lines, error]) + "\n"


def root(log: str, *project: str, hang: bool = False) -> Signature:
    found = signature(log, project or ("svc",), hang=hang)
    assert found is not None
    return found


def said(log: str, *project: str, hang: bool = False) -> str:
    found = root(log, *project, hang=hang)
    return f"{found.type}: {found.message}"


def test_a_traceback_below_a_warning_gives_way_when_the_warning_is_of_a_failure() -> None:
    more = "2025-09-25 12:00:01,123 INFO going on\n"
    for before in ("a line before\n", "a line before\n" * 256):
        warned = before + "2025-09-25 12:00:00,123 WARNING could not write the cache\n" + raised("OSError: no space")
        assert said(warned + more + raised("ValueError: no model")) == "ValueError: no model"
    assert said(warned.replace("WARNING", "INFO") + more + raised("ValueError: no model")) == "OSError: no space"


def test_a_crash_right_below_a_warning_of_something_else_is_the_root() -> None:
    warned = "2025-09-25 12:00:00,123 WARNING falling back to eager mode\n" + raised("ValueError: no model")
    assert said(warned + "2025-09-25 12:00:01,123 INFO stopping\n" + raised("RuntimeError: Exiting")).startswith(
        "Value"
    )


CHAINS = [
    "\nDuring handling of the above exception, another exception occurred:\n\n",
    "\nThe above exception was the direct cause of the following exception:\n\n",
]


@pytest.mark.parametrize("between", CHAINS)
def test_the_first_cause_of_a_chain_is_the_root(between: str) -> None:
    log = raised("KeyError: 'a'") + between + raised("ValueError: bad a") + between + raised("OSError: gave up")
    assert said(log) == "KeyError: 'a'"


def test_a_cause_that_only_a_library_saw_is_the_root_when_the_project_led_to_what_followed() -> None:
    library = "/v/lib/python3.12/site-packages/other/x.py h"
    log = raised("LookupError: no such key", library) + CHAINS[1] + raised("ValueError: no model")
    assert said(log) == "LookupError: no such key"


def test_an_exception_of_a_library_alone_gives_way_to_one_of_the_project() -> None:
    library = "/v/lib/python3.12/site-packages/other/x.py h"
    assert said(raised("LookupError: in a thread", library) + raised("ValueError: no model")) == "ValueError: no model"


@pytest.mark.parametrize(
    "generic",
    [
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        "subprocess.CalledProcessError: Command '['x']' returned non-zero exit status 1.",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGABRT",
        "ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.",
        "SystemExit: 1",
        "EOFError",
        "BrokenPipeError: [Errno 32] Broken pipe",
        "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly",
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above).",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "KeyboardInterrupt",
    ],
)
def test_what_only_points_at_another_failure_or_follows_from_it_gives_way(generic: str) -> None:
    assert said(raised(generic) + raised("ValueError: no model")) == "ValueError: no model"
    assert root(raised(generic)).type == generic.partition(":")[0].rpartition(".")[2]


def test_what_was_logged_as_a_warning_gives_way_even_to_a_generic_error() -> None:
    warned = raised("ImportError: no plug-in", prefix="WARNING 09-25 12:00:00 [a.py:1] ")
    assert said(warned + raised("ValueError: no model")) == "ValueError: no model"
    assert root(warned + raised("SystemExit: 1")).type == "SystemExit"
    assert said(warned) == "ImportError: no plug-in"


def test_an_exception_in_a_finaliser_gives_way() -> None:
    ignored = "Exception ignored in: <function Pool.__del__ at 0x7f00>\n" + raised("AttributeError: 'x'")
    assert said(ignored + raised("ValueError: no model")) == "ValueError: no model"


def test_each_process_is_followed_on_its_own() -> None:
    one = raised("ValueError: one", prefix="(A pid=1) ").splitlines()
    other = raised("OSError: other", "/app/svc/b.py h", prefix="[rank1]: ").splitlines()
    mixed = "\n".join(line for pair in zip(one, other, strict=True) for line in pair)
    assert said(mixed) == "ValueError: one"
    assert root(mixed).frames == (Frame("svc/a.py", "f"),)


@pytest.mark.parametrize(
    "mark",
    [
        "ERROR 09-25 12:00:00 core.py:387] ",
        "(VllmWorker rank=2 pid=1234) ERROR 09-25 12:00:00 [core.py:387] ",
        "\x1b[1;36m(VllmWorker TP2 pid=77)\x1b[0;0m ERROR 09-25 12:00:00 [core.py:387] ",
        "2025-09-25T12:00:00.123456789Z stderr F ",
        "Sep 25 12:00:00 node7 svc[123]: ",
        "[1,3]<stderr>:",
        "[default3]:",
        "node7-1  | ",
        "3: ",
        "2026-11-30T12:00:00.000Z [rank1]: ",
    ],
)
def test_what_stands_before_each_line_of_a_traceback_is_taken_off(mark: str) -> None:
    found = root(raised("ValueError: no model", prefix=mark))
    assert (found.type, found.message, found.frames) == ("ValueError", "no model", (Frame("svc/a.py", "f"),))


def test_only_the_first_line_of_a_record_may_bear_a_mark() -> None:
    log = "[2025-09-25 12:00:00 DP1 TP3] Scheduler hit an exception: " + raised("ValueError: no model")
    assert root(log).frames == (Frame("svc/a.py", "f"),)


@pytest.mark.parametrize("between", CHAINS)
def test_a_chain_within_a_record_is_followed_to_its_first_cause(between: str) -> None:
    library = "/v/lib/python3.12/site-packages/other/x.py h"
    log = "[2025-09-25 12:00:00 TP3] Scheduler hit an exception: " + raised("LookupError: no such key", library)
    assert said(log + between + raised("ValueError: no model")) == "LookupError: no such key"


def test_a_traceback_in_a_box_is_read() -> None:
    box = "╭─ Traceback (most recent call last) ─╮\n│ /app/svc/a.py:12 in f │\n│ ❱ 12 │ x = g(y) │\n╰──╯\n"
    assert root(box + "ValueError: no model\n").frames == (Frame("svc/a.py", "f"),)


def test_a_bare_assertion_is_told_by_its_source() -> None:
    log = raised("AssertionError").replace("x = g(y)", "assert n % 8 == 0")
    assert said(log) == "AssertionError: assert n % <n> == <n>"


def test_a_message_that_only_announces_takes_the_next_line_along() -> None:
    log = raised("RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for w: 3 and 4")
    assert said(log) == "RuntimeError: Error(s) in loading state_dict for Net: size mismatch for w: <n> and <n>"


def test_frames_are_the_project_s_alone_innermost_first_and_the_rest_leads_there() -> None:
    frames = [f"/v/lib/python3.12/site-packages/svc/m{n}.py f{n}" for n in range(6)]
    found = root(
        raised(
            "ValueError: x", *frames, "/v/lib/python3.12/site-packages/torch/nn.py g", "/usr/lib/python3.12/json.py h"
        )
    )
    assert [frame.function for frame in found.frames] == ["f5", "f4", "f3", "f2"]
    assert found.outer == (Frame("svc/m1.py", "f1"), Frame("svc/m0.py", "f0"))


@pytest.mark.parametrize(
    "path",
    [
        "/home/me/svc/a/b.py",
        "/opt/v/lib/python3.11/site-packages/svc/a/b.py",
        "/tmp/x1/repo/svc/svc/a/b.py",
        "C:\\w\\svc\\a\\b.py",
    ],
)
def test_a_file_is_named_from_the_package_on(path: str) -> None:
    assert root(raised("ValueError: x", f"{path} f")).frames == (Frame("svc/a/b.py", "f"),)


def test_a_native_death_takes_the_frames_that_the_same_process_tells_next() -> None:
    log = (
        "terminate called after throwing an instance of 'std::runtime_error'\n  what():  bad block\n"
        "Fatal Python error: Aborted\n\nCurrent thread 0x00007f01 (most recent call first):\n"
        '  File "/app/svc/a.py", line 3 in f\n'
    )
    found = root(log)
    assert (found.kind, found.type, found.message) == (Kind.CPP, "std::runtime_error", "bad block")
    assert found.frames == (Frame("svc/a.py", "f"),)


@pytest.mark.parametrize(
    ("line", "kind", "told"),
    [
        ("Segmentation fault (core dumped)", Kind.SIGNAL, "SIGSEGV: Segmentation fault"),
        ("x.sh: line 3: 77 Bus error  (core dumped) svc", Kind.SIGNAL, "SIGBUS: Bus error"),
        ("!!!!!!! Segfault encountered !!!!!!!", Kind.SIGNAL, "SIGSEGV: Segmentation fault"),
        ("free(): invalid pointer", Kind.SIGNAL, "SIGABRT: free(): invalid pointer"),
        (
            "==7==ERROR: AddressSanitizer: SEGV on unknown address 0x0000",
            Kind.SIGNAL,
            "AddressSanitizer: SEGV on unknown address <addr>",
        ),
        (
            "a.cc:3:7: runtime error: signed integer overflow",
            Kind.SIGNAL,
            "UndefinedBehaviorSanitizer: signed integer overflow",
        ),
        ("python: /b/x.cc:9: void f(int): Assertion `n > 0' failed.", Kind.ASSERTION, "Assertion: n > <n>"),
        ("/b/ggml.c:9: GGML_ASSERT(a == b) failed", Kind.ASSERTION, "Assertion: a == b"),
        ("CUDA error 700 at a.cu:3: illegal address", Kind.CUDA, "CUDA error: CUDA error 700 at a.cu: illegal address"),
        ("n1:7:9 [0] NCCL WARN Cuda failure 'out of memory'", Kind.NCCL, "NCCL: Cuda failure 'out of memory'"),
        (
            "libc++abi: terminating due to uncaught exception of type std::bad_alloc: std::bad_alloc",
            Kind.CPP,
            "std::bad_alloc: std::bad_alloc",
        ),
        ('csrc/a.cu(7): error: identifier "x" is undefined', Kind.COMPILER, "error: identifier 'x' is undefined"),
        ("ptxas fatal   : Unresolved extern function 'f'", Kind.COMPILER, "error: Unresolved extern function 'f'"),
        ("src/a.ts(3,7): error TS2304: Cannot find name 'x'.", Kind.COMPILER, "TS2304: Cannot find name 'x'."),
        ("  ● sum › adds", Kind.OTHER, "failed test: sum › adds"),
        ("run.sh: line 3: svc: command not found", Kind.OTHER, "error: svc: command not found"),
        ("make: *** [Makefile:12: all] Error 2", Kind.OTHER, "error: *** [Makefile:<n>: all] Error 2"),
        ("curl: (7) Failed to connect", Kind.OTHER, "error: (<n>) Failed to connect"),
        ("ERROR:    no model", Kind.OTHER, "error: no model"),
        ("--- FAIL: TestPick (0.00s)", Kind.OTHER, "failed test: TestPick"),
        ("svc: error: unknown option --x", Kind.OTHER, "error: unknown option --x"),
        ("2025-09-25 12:00:00,123 - svc - ERROR - no model 'x'", Kind.OTHER, "error: no model 'x'"),
        ("ERROR 09-25 12:00:00 [a.py:7] svc.ModelError: no model", Kind.PYTHON, "ModelError: no model"),
    ],
)
def test_one_line_tells_it(line: str, kind: Kind, told: str) -> None:
    found = root(f"all is well\n{line}\nbye\n")
    assert (found.kind, f"{found.type}: {found.message}", found.line) == (kind, told, 2)


@pytest.mark.parametrize(
    "line",
    [
        "0 errors, 3 warnings",
        "Error: 0",
        "Failed requests: 0",
        "INFO: no error so far",
        "INFO 09-25 12:00:00 [a.py:1] CUDA error: none so far",
        "WARNING 09-25 12:00:00 [a.py:1] error: none",
        "-- Performing Test HAVE_ERROR - Failed",
        "test_error_handling PASSED",
        "[rank0]:[W925 12:00:00.1 ProcessGroupNCCL.cpp:1538] Warning: destroy_process_group() was not called",
        'INFO:     127.0.0.1:1 - "POST /v1/x HTTP/1.1" 500 Internal Server Error',
    ],
)
def test_a_line_that_only_talks_of_errors_is_none(line: str) -> None:
    assert signature(f"start\n{line}\nend\n") is None


def test_a_hang_counts_only_when_it_is_told_and_nothing_failed() -> None:
    quiet = "loading\nINFO 09-25 12:00:00 [a.py:1] waiting for 3 peers\n\n"
    assert signature(quiet) is None
    assert said(quiet, hang=True) == "hang: waiting for <n> peers"
    assert root(quiet, hang=True).line == 2
    assert said(quiet + raised("ValueError: no model") + quiet, hang=True) == "ValueError: no model"
    assert root("svc: error: slow\n" + quiet, hang=True).kind is Kind.HANG


def test_the_dump_of_a_hung_process_tells_where_it_stood() -> None:
    found = root(
        'Timeout (0:05:00)!\nThread 0x00007f01 (most recent call first):\n  File "/app/svc/a.py", line 3 in wait\n',
        hang=True,
    )
    assert (found.kind, found.frames) == (Kind.HANG, (Frame("svc/a.py", "wait"),))


def test_another_line_inside_a_traceback_does_not_end_it() -> None:
    lines = raised("ValueError: no model").splitlines()
    lines[2:2] = ["progress 50%", "INFO: still here"]
    assert said("\n".join(lines)) == "ValueError: no model"
    assert root("\n".join(lines)).frames


def test_one_failure_repeated_thousands_of_times_hides_no_other_one() -> None:
    many = "".join(f"ERROR 09-25 12:00:00 [a.py:1] request {n} failed: {'ab' * (n % 50)}\n" for n in range(6000))
    assert said(many + raised("ValueError: no model") + many) == "ValueError: no model"


def test_a_type_says_little_when_any_place_may_raise_it() -> None:
    log = "terminate called after throwing an instance of 'svc::Full'\n  what():  {}\n"
    one, other = root(log.format("pool is full")), root(log.format("no room is left"))
    vague = [root(raised(f"RuntimeError: {text}", "/app/svc/a.py f")) for text in ("pool is full", "no room is left")]
    assert similarity(one, other) > 0
    assert not same(*vague)


LONG = [
    "a" * 65536, " " * 65536, "Error: " * 9362, 'File "' * 10922, "(" * 65536, "(pid=1" * 10922, "x:1:" * 16384,
    "1," * 32768, "1" * 65536, "0xdeadbeef " * 5957, " at a(b:1)" * 6000, "Assertion `" * 5957, "rror:" * 13107,
    "error\r" * 10922, "a1" * 32768, "/a" * 32768, "/tmp/" * 13107, "see " * 16384 + "Error", "#0 " * 20000,
    "a:1: error: " * 5461, "ERROR " * 10922, "12:00:00 " * 7281, ": In function " * 4000, "<" * 65536,
    "a::b<" * 13107, "===" * 21845, "___ " * 16384, "\x1b[1" * 16384, "tmp/" * 16384,
]  # fmt: skip
OPENINGS = [
    "", "Error: x\n", "RuntimeError: ", "ERROR 09-25 12:00:00 [a.py:1] ", "thread 'x' panicked at a.rs:1:1:\n",
    "=== FAILURES ===\n", "terminate called after throwing an instance of 'x'\n",
    "panic: x\ngoroutine 1 [running]:\n", "Fatal Python error: x\n", "Traceback (most recent call last):\n",
    'Traceback (most recent call last):\n  File "a.py", line 1, in x\nRuntimeError: ',
]  # fmt: skip


@pytest.mark.timeout(60)
@pytest.mark.parametrize("opening", OPENINGS)
def test_no_line_of_64_kib_runs_away(opening: str) -> None:
    for line in LONG:
        found = signature(f"{opening}{line}\nbye\n", hang=True)
        assert found is not None
        assert len(found.message) <= 400
