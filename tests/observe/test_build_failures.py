"""The line that says why a build failed, and whether it was the network: each rule by a line that a tool wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.observe import first_error, unreachable
from worker.observe.builds import RULES, matching
from worker.observe.network import UNREACHABLE

#: By rule; of what goes on in the next line, both.
SAID = {
    "gcc": [
        "csrc/a.c:3:5: error: expected expression before ‘;’ token",
        "b.c:1:10: fatal error: nope.h: No such file or directory",
        "/tmp/with space/x.cpp:12: error: no member named 'f' in 'std'",
        "x.cc:1:1: internal compiler error: Segmentation fault",
    ],
    "nvcc": [
        'k.cu(1): error: identifier "undefined_thing" is undefined',
        'k.cuh(12): error #20: identifier "x" is undefined',
        'k.cu(7): catastrophic error: cannot open source file "nope.h"',
    ],
    "driver": [
        "cc1: fatal error: nofile.c: No such file or directory",
        "x86_64-linux-gnu-gcc-12: error: unrecognized command-line option ‘-fnope’",
        "/usr/bin/clang++-14: error: no such file or directory: 'x.cc'",
        "nvcc fatal   : Unsupported gpu architecture 'sm_20'",
        "ptxas error   : Entry function uses too much shared data",
    ],
    "undefined": [
        "a.c:(.text+0xa): undefined reference to `f'",
        "ld.lld: error: undefined symbol: f",
        "ImportError: /x/_C.abi3.so: undefined symbol: _ZN2at4f",
    ],
    "twice": ["/usr/bin/ld: b.o:(.bss+0x0): multiple definition of `x'; a.o:(.bss+0x0): first defined here"],
    "ld": ["/usr/bin/ld: cannot find -lnope: No such file or directory", "ld: symbol(s) not found for architecture x"],
    "rustc": ["error[E0425]: cannot find value `y` in this scope"],
    "go": ["./main.go:5:2: undefined: x", "pkg/a.go:4:2: cannot find package"],
    "cython": ["c.pyx:1:24: Expected an identifier or literal"],
    "cmake": ['CMake Error at CMakeLists.txt:3 (find_package):\n  By not providing "FindNope.cmake" in the path'],
    "cmake-plain": ["CMake Error: The source directory does not exist."],
    "cmake-bare": ["CMake Error:\n  Running\n"],
    "make": ["make: *** No rule to make target 'y', needed by 'x'.  Stop.", "Makefile:3: *** no separator.  Stop."],
    "ninja": ["ninja: error: build.ninja:1: unknown build rule 'cc'"],
    "meson": ['meson.build:2:0: ERROR: Dependency "nope" not found (tried pkg-config and cmake)'],
    "go-tool": ["go: cannot find main module, but found .git/config in /x"],
    "npm": ["npm ERR! 404 Not Found - GET https://r/x", "npm error notarget No matching version found for x@9."],
    "uv": ["× No solution found when resolving dependencies:\n  ╰─▶ Because a was not found, b cannot be used."],
    "cause": ["cause: Because setuptools was not found in the cache and you require setuptools, it cannot be."],
    "syntax": ["SyntaxError: invalid syntax"],
    "shell": ["/bin/bash: line 3: cmake: command not found"],
    "firstbad": ["firstbad: the build left no wheel in $FIRSTBAD_OUT; exactly one is needed"],
    "error": [
        "error: package directory 'src' does not exist",
        "error: expected one of `!` or `::`, found `y`",
        "fatal: not a git repository (or any of the parent directories): .git",
        "E: Unable to locate package nope",
    ],
    "collect2": ["collect2: error: ld returned 1 exit status"],
    "clang-linker": ["clang: error: linker command failed with exit code 1 (use -v to see invocation)"],
    "command": [
        "error: command '/usr/bin/gcc' failed with exit code 1",
        "error: Command '['gcc', '-c', 'x.c']' returned non-zero exit status 1.",
        "setuptools.errors.CompileError: command 'gcc' failed: No such file or directory",
    ],
    "called": [
        "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.",
        "RuntimeError: Error compiling objects for extension",
    ],
    "cargo-end": ["error: could not compile `x` (lib) due to 1 previous error"],
    "pip-end": ["error: subprocess-exited-with-error", "error: metadata-generation-failed"],
    "wheel-end": ["ERROR: Failed building wheel for a", "ERROR: Failed to build one or more wheels"],
    "wheel-failed": ["error: Failed to build `/tmp/s`", "× Building wheel for a did not run successfully."],
    "uv-end": ["error: The build backend returned an error", "Call to `setuptools.build_meta.build_wheel` failed"],
    "make-end": ["make[1]: *** [Makefile:2: x] Error 1", "make: *** [x.o] Error 2"],
    "ninja-end": ["ninja: build stopped: subcommand failed.", "FAILED: CMakeFiles/x.dir/a.c.o "],
}  # fmt: skip
NOTHING = [
    "gcc -Werror -Wall -c error.c -o error.o",
    "[3/10] Building CXX object CMakeFiles/error.dir/fatal_error.cpp.o",
    "-- Performing Test HAS_ERROR - Failed",
    "a.c:3:5: warning: unused variable ‘error’",
    "warning: c.pyx:1:2: something old",
    "go: downloading example.org/x v1.0.0",
    "copying errors.py -> build/lib/errors.py",
    "0 errors, 0 warnings",
    "/usr/bin/ld: warning: x.o: missing .note.GNU-stack section implies executable stack",
]

NETWORK = {
    "name": ["curl: (6) Could not resolve host: nope.invalid", "wget: unable to resolve host address ‘nope.invalid’"],
    "resolver": [
        "urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>",
        "E: Failed to fetch http://d/x.deb  Temporary failure resolving 'd'",
        "go: x: dial tcp: lookup proxy.example.org: no such host",
    ],
    "connect": [
        "fatal: unable to access 'http://h/x/': Failed to connect to h port 9 after 0 ms: Couldn't connect to server",
        "[7] Could not connect to server (Failed to connect to 127.0.0.1 port 9)",
        "cause: tcp connect error",
    ],
    "connection": [
        "cause: Connection refused (os error 111)",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "ssh: connect to host h port 22: No route to host",
    ],
    "network": ["cause: error sending request for url (http://127.0.0.1:9/simple/setuptools/)"],
    "urllib": ["ERROR: Could not install: HTTPSConnectionPool(host='h', port=443): Max retries exceeded with url: /x"],
    "urlopen": ["http.client.RemoteDisconnected: Remote end closed connection without response"],
    "node": ["npm error code ECONNREFUSED", "npm ERR! code E503"],
    "http": [
        "urllib.error.HTTPError: HTTP Error 503: Service Unavailable",
        "ERROR: HTTP error 502 while getting http://h/x.whl",
        "cause: HTTP status server error (503 Service Unavailable) for url (http://h/x)",
        "HTTP status client error (429 Too Many Requests) for url (http://h/x)",
        "fatal: unable to access 'https://h/x/': The requested URL returned error: 503",
        "    status_code: 503",
    ],
    "requests": ["requests.exceptions.HTTPError: 500 Server Error: Internal Server Error for url: http://h/x"],
    "reason": ["E: Failed to fetch http://d/x.deb  503  Service Unavailable [IP: 127.0.0.1 80]"],
    "tls": [
        "curl: (60) SSL certificate problem: self-signed certificate",
        "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: has expired",
        "fatal: unable to access 'https://h/x/': gnutls_handshake() failed: The TLS connection was non-properly ended",
    ],
    "git": ["fatal: early EOF", "error: RPC failed; curl 56 GnuTLS recv error (-9)"],
    "curl": ["curl: (52) Empty reply from server"],
    "timeout": ["TimeoutError: The read operation timed out", "go: x: Get \"https://h\": net/http: i/o timeout"],
}  # fmt: skip
REACHED = [
    "ERROR: No matching distribution found for nope==9",
    "ERROR: Could not find a version that satisfies the requirement nope (from versions: none)",
    "fatal: unable to access 'https://h/x/': The requested URL returned error: 404",
    "HTTP status client error (404 Not Found) for url (http://h/x)",
    "warning: spurious network error (2 tries remaining): [6] Could not resolve host: h",
    "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError(': Connection refused')': /x/",
    "npm error code E404",
    "[503/1000] Building CXX object network.cpp.o",
    "error: command '/usr/bin/gcc' failed with exit code 1",
    "Downloading https://h/x.whl (512 kB)",
]  # fmt: skip
STAMP = b"2026-01-02T03:04:05.678Z "


def log(text: str) -> list[bytes]:
    return [STAMP + line.encode() + b"\n" for line in text.splitlines()]


def test_every_rule_has_a_line() -> None:
    assert set(SAID) == {rule.name for rule in RULES}
    assert set(NETWORK) == set(UNREACHABLE)


@pytest.mark.parametrize(("rule", "said"), [(rule, said) for rule, lines in SAID.items() for said in lines])
def test_a_line_is_found_by_its_rule(rule: str, said: str) -> None:
    found = matching(said.splitlines()[0].strip())
    assert found is not None and found.name == rule
    around = f"making a wheel\n      {said}\nbye"
    assert first_error(log(around)) == " ".join(line.strip() for line in said.splitlines() if line.strip())


@pytest.mark.parametrize("said", NOTHING)
def test_a_line_that_says_nothing_of_a_failure_is_no_error(said: str) -> None:
    assert first_error(log(said)) is None


@pytest.mark.parametrize(("name", "said"), [(name, said) for name, lines in NETWORK.items() for said in lines])
def test_a_network_that_failed_is_seen(name: str, said: str) -> None:
    assert UNREACHABLE[name].search(said)
    assert unreachable(log(f"building\n{said}\nbye")) == said.strip()


@pytest.mark.parametrize("said", REACHED)
def test_an_index_that_answered_is_not_blamed(said: str) -> None:
    assert unreachable(log(f"building\n{said}\nbye")) is None


PIP = """
  error: subprocess-exited-with-error
  × Building wheel for a (pyproject.toml) did not run successfully.
  ╰─> [9 lines of output]
      gcc -Wsign-compare -c x.c -o build/x.o
      x.c:1:9: error: expected expression before ‘;’ token
      error: Command '['gcc', '-c', 'x.c']' returned non-zero exit status 1.
  ERROR: Failed building wheel for a
"""
PARALLEL = """
make -j2
gcc -c a.c
\x1b[01m\x1b[Kg.c:\x1b[m In function ‘g’:
gcc -c b.c
make[2]: *** [Makefile:3: z.o] Error 1
\x1b[01m\x1b[Kg.c:2:3:\x1b[m\x1b[K \x1b[01;31m\x1b[Kerror: \x1b[m\x1b[Kunknown type name ‘foo’
h.c:9:9: error: later
make[1]: *** [Makefile:1: all] Error 2
"""
SETUP = """
Traceback (most recent call last):
  File "<string>", line 1, in <module>
    raise KeyError("x")
KeyError: 'x'
[end of output]
During handling of the above exception, another exception occurred:
Traceback (most recent call last):
  File "<string>", line 2, in <module>
RuntimeError: later
error: subprocess-exited-with-error
"""
TORCH = """
FAILED: /x/k.o
/usr/local/cuda/bin/nvcc -c k.cu -o k.o
k.cu(1): error: identifier "x" is undefined
1 error detected in the compilation of "k.cu".
ninja: build stopped: subcommand failed.
Traceback (most recent call last):
  File "/x/cpp_extension.py", line 2107, in _run_ninja_build
    subprocess.run(
subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.
RuntimeError: Error compiling objects for extension
"""
OUTSIDE = (
    "Traceback (most recent call last):\n  File 'x', line 1\nmypkg.TooOld: needs a newer one\nmake: *** [x] Error 1"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PIP, "x.c:1:9: error: expected expression before ‘;’ token"),
        (PARALLEL, "g.c:2:3: error: unknown type name ‘foo’"),
        (SETUP, "KeyError: 'x'"),
        (TORCH, 'k.cu(1): error: identifier "x" is undefined'),
        (OUTSIDE, "mypkg.TooOld: needs a newer one"),
        ("#12 3.456 a.c:1:1: error: within an image", "a.c:1:1: error: within an image"),
        ("make: *** [x] Error 1\nninja: build stopped: y", "make: *** [x] Error 1"),
        ("CMake Error at CMakeLists.txt:3 (find_package):", "CMake Error at CMakeLists.txt:3 (find_package):"),
        ("all is well", None),
        ("", None),
    ],
)
def test_the_line_that_says_most_is_taken(text: str, said: str | None) -> None:
    assert first_error(log(text)) == said


def test_pip_without_an_index_is_the_network_and_with_one_it_is_not() -> None:
    retry = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)': /simple/x/\n"
    none = "ERROR: Could not find a version that satisfies the requirement x (from versions: none)"
    assert unreachable(log(retry + none)) == none
    assert unreachable(log(none)) is None
    assert unreachable(log(retry + "KeyError: 'x'")) is None


def test_a_compiler_that_found_something_wrong_is_believed_more_than_the_network() -> None:
    assert unreachable(log("curl: (6) Could not resolve host: h\na.c:1:1: error: expected ‘;’")) is None


@given(st.lists(st.binary(max_size=200)))
def test_any_log_can_be_looked_at(lines: list[bytes]) -> None:
    assert first_error(lines) is None or isinstance(first_error(lines), str)
    assert unreachable(lines) is None or isinstance(unreachable(lines), str)
