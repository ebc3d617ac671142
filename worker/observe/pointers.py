"""Failures that are not the root: they point at another one, or follow from it. The table of docs/signatures.md."""

from __future__ import annotations

import re
from enum import IntEnum

from worker.observe.failures import Failure, Kind


class Rank(IntEnum):
    """How well a failure explains the rest; the smaller, the better."""

    SPECIFIC = 0
    #: A language's exception that no frame of the project led to.
    UNPLACED = 1
    #: What a process says when another one has gone.
    CONSEQUENCE = 2
    #: "See above."
    GENERIC = 3
    #: Somebody caught it: a warning, an exception in a finaliser.
    HANDLED = 4
    #: One line that says "error", without a place.
    LINE = 5
    GENERIC_LINE = 6


_GENERIC_TYPES = frozenset({
    "ActorDiedError", "ActorUnavailableError", "BaseExceptionGroup", "CalledProcessError", "ChildFailedError",
    "EngineDeadError", "EngineGenerateError", "ExceptionGroup", "Exit", "InvocationTargetException",
    "MultipleFailures", "ProcessExitedException", "ProcessRaisedException", "RayActorError", "RayTaskError",
    "RemoteTraceback", "SystemExit", "WorkerCrashedError", "_RemoteTraceback",
})  # fmt: skip
_GENERIC_WORDS = (
    r"[Ss]ee (?:the )?(?:root cause|stack ?trace|traceback|logs?|errors? messages?|error|messages?|output)",
    r"[Ss]ee .{0,40}\babove\b", r"for (?:the )?root cause", r"stack trace above", r"error messages? above",
    r"logs? above", r"Engine core initialization failed", r"Engine (?:core )?process failed to start",
    r"EngineCore (?:failed|encountered|died)", r"WorkerProc initialization failed",
    r"Worker(?:Proc)? (?:hit an exception|failed with error)", r"Engine loop is not running",
    r"(?:AsyncLLM|LLM|MQLLM)?Engine (?:has |is )?(?:died|dead|failed)",
    r"Background loop (?:has errored|is stopped)", r"hit an exception", r"(?:Rank|rank) \d+ scheduler is dead",
    r"Initialization failed", r"child process.{0,40}(?:fail|exit|died)",
    r"[Ww]orker .{0,60}(?:died|is dead|exited|crashed)",
    r"[Ss]erver (?:process )?(?:exited|died|failed to start|stopped)",
    r"(?:exited|died|terminated|quit)(?: unexpectedly)?(?: with| due to|,)? (?:exit ?(?:code|status)"
    r"|signal|the following error|non-zero)",
    r"returned non-zero exit status", r"[Cc]ommand .{0,400}(?:failed|returned|exited)", r"exited? unexpectedly",
    r"exit(?:ed)? (?:with )?(?:code|status) -?\d+$", r"exitcode: -?\d+", r"\b\d{1,6} sub-exceptions?\)",
    r"Error compiling objects for extension", r"[Ff]ailed (?:building|to build)", r"Failed to build",
    r"[Bb]uild (?:failed|stopped)", r"subcommand failed", r"could not compile `", r"aborting due to",
    r"ld returned \d+ exit status", r"linker command failed", r"compilation (?:failed|terminated)",
    r"COMPILATION ERROR", r"BUILD FAILURE", r"Failed to execute goal", r"Configuring incomplete", r"\[Makefile",
    r"\*\*\* \[", r"Process completed with exit code", r"npm ERR!", r"ELIFECYCLE", r"Test run failed",
    r"There are test failures", r"Primary job +terminated", r"mpirun (?:noticed|detected)",
    r"MPI_ABORT was invoked", r"Sending process .{0,60} closing signal", r"failed \(exitcode: -?\d+\)",
    r"The actor .{0,40}(?:died|is dead)", r"metadata-generation-failed", r"subprocess-exited-with-error",
    r"Executor(?:Worker)? .{0,60}(?:error|failed).{0,40}shut", r"shutting down", r"device-side assert triggered",
    r"Unhandled (?:exception|error)", r"Uncaught (?:exception|signal)", r"task .{0,60} failed",
    r"backend='\w+' raised", r"Error in model execution", r"failed to (?:start|initialize)\b.{0,60}$",
    r"\bExiting\b", r"exit code \d+",
)  # fmt: skip
_GENERIC = re.compile("|".join(_GENERIC_WORDS))
_CONSEQUENT_TYPES = frozenset({
    "BrokenBarrierError", "BrokenPipeError", "BrokenProcessPool", "CancelledError", "ClientConnectorError",
    "ClosedResourceError", "ConnectError", "ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError",
    "ConnectionResetError", "EOFError", "Empty", "Full", "GeneratorExit", "InterruptedError", "KeyboardInterrupt",
    "MaxRetryError", "NewConnectionError", "ReadTimeout", "RemoteProtocolError", "SIGABRT", "SIGKILL", "SIGTERM",
    "ServerDisconnectedError", "StopAsyncIteration", "StopIteration", "TimeoutError", "Watchdog", "ZMQError",
})  # fmt: skip
_CONSEQUENT_WORDS = (
    r"Connection (?:closed|reset|refused|aborted|lost)", r"[Bb]roken pipe", r"[Ss]ocket (?:closed|Timeout)",
    r"Process group watchdog", r"Watchdog caught collective operation timeout", r"HeartbeatMonitor",
    r"communicator was aborted", r"remote process exited", r"[Bb]ad file descriptor",
    r"cannot schedule new futures", r"Event loop is closed", r"RPC call to .{0,60} timed out", r"\bcancell?ed\b",
    r"[Ll]eaked (?:semaphore|shared_memory)", r"Failed to (?:recv|send|check the).{0,60}TCPStore", r"PoisonError",
    r"driver shutting down", r"read ECONNRESET", r"without an active exception",
)  # fmt: skip
_CONSEQUENT = re.compile("|".join(_CONSEQUENT_WORDS))
_LANGUAGES = frozenset({Kind.PYTHON, Kind.JVM, Kind.NODE, Kind.GO, Kind.RUST, Kind.CUDA, Kind.NCCL})


def rank(failure: Failure, placed: bool) -> Rank:
    """`placed`: a frame of the project led to it, or to what it led to."""
    generic = is_generic(failure)
    if failure.line_only and failure.kind is not Kind.SIGNAL:
        return Rank.GENERIC_LINE if generic else Rank.LINE
    if failure.handled:
        return Rank.HANDLED
    if generic:
        return Rank.GENERIC
    if failure.line_only or follows(failure):
        return Rank.CONSEQUENCE
    return Rank.UNPLACED if failure.kind in _LANGUAGES and not placed else Rank.SPECIFIC


def is_generic(failure: Failure) -> bool:
    return failure.wraps or failure.type in _GENERIC_TYPES or bool(_GENERIC.search(failure.message))


def follows(failure: Failure) -> bool:
    """Said by a process that another one left alone, or ended. A failed check of the heap ends by SIGABRT too."""
    if failure.type == "SIGABRT" and failure.message not in ("", "Aborted"):
        return False
    return failure.type in _CONSEQUENT_TYPES or bool(_CONSEQUENT.search(failure.message))
