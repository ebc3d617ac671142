"""What a user asks of firstbad about a generated repository; requests/tinyserve.yaml says the same."""

from typing import Any, Protocol

SPECULATIVE = '{"method": "mtp", "num_speculative_tokens": 2}'
#: Naming the port lets two servers run at once also where they share a network.
SERVE = (
    f"tinyserve serve tiny/next-80b --port $FIRSTBAD_PORT --tensor-parallel-size 4 --speculative-config '{SPECULATIVE}'"
)
#: What its compiled module is made from, and what its wheel holds: a commit of tests or documents needs no build.
NATIVE = ["csrc/**", "build_backend/**"]
WHEEL = ["tinyserve/**", "csrc/**", "build_backend/**", "/pyproject.toml", "/README.md", "/LICENSE"]
CHECK = "tinyserve bench --url $FIRSTBAD_URL --requests 3"


class Ends(Protocol):
    @property
    def path(self) -> object: ...
    @property
    def good(self) -> str: ...
    @property
    def bad(self) -> str: ...


def request(example: Ends) -> dict[str, Any]:
    """Which commit broke the start with two speculative tokens."""
    return {
        "repo": str(example.path),
        "good": example.good,
        "bad": example.bad,
        "serve": {"command": SERVE, "ready": {"http": "/health", "within": "60s"}},
        "check": CHECK,
        "package": "tinyserve",
        "native_paths": NATIVE,
        "wheel_paths": WHEEL,
    }
