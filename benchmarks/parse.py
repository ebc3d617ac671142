"""How long a text of an issue takes to be read, in milliseconds of CPU, for texts of 1 MB that are made to be hard.

Usage: python -m benchmarks.parse [SEED]
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from time import process_time

from service.adapters import failures, servers
from service.application.parse import Known, parse

SIZE, TIMES = 1_000_000, 3
PIECES = [
    *("works", "in", "fails", "since", "vllm serve x --tp 4", "v0.9.2", "0.10.0", "072d7e5", "PR #123", "2026-07-29"),
    *(
        "nightly",
        "```",
        "`",
        "|",
        "|---|\n",
        ">",
        "-",
        "1.",
        "#",
        "**",
        "Traceback",
        "ValueError:",
        "File",
        "\n",
        "\n\n",
    ),
    *(
        "https://github.com/a/b/commit/",
        "\t",
        "<details>",
        "</details>",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        "..",
        "...",
        ":",
    ),
]


def texts(seed: int) -> Iterator[tuple[str, str]]:
    chance = random.Random(seed)
    yield "pieces, glued", "".join(chance.choices(PIECES, k=SIZE // 3))
    yield "pieces, spaced", " ".join(chance.choices(PIECES, k=SIZE // 4))
    yield "pieces, by line", "\n".join(" ".join(chance.choices(PIECES, k=8)) for _ in range(SIZE // 32))
    yield "characters", "".join(chance.choices("`*_[]()<>\n #-|~>1. abc\tv09.", k=SIZE))
    for piece in ("- a\n", "> ", "a\n", "a\n\n", "|a|b|\n", "1.2.3 ", "v0.9.2 works, ", "`vllm serve x` ", "[a]: b\n"):
        yield f"{piece!r} again and again", piece * (SIZE // len(piece))
    for piece in ("a", "1", ".", "-", "[", "`", "a.", "a/", "0a", "bisected ", "A=b "):
        yield f"{piece!r} again and again", piece * (SIZE // len(piece))
    yield "a log", "```\n" + "(Worker pid=1) ERROR 09-25 10:00:00 [a.py:1] ValueError: no 1.2.3\n" * (SIZE // 66)
    trace = 'Traceback (most recent call last):\n  File "/a/b.py", line 1, in c\n    d()\nValueError: e\n'
    yield "tracebacks", "```\n" + trace * (SIZE // len(trace))
    yield "commands", "```bash\n" + "A=b C=d vllm serve x --tensor-parallel-size 4\n" * (SIZE // 46)


def main(seed: int) -> None:
    known, servers_known = Known({"vllm": "vllm"}), servers.load()
    worst = 0.0
    for name, text in texts(seed):
        took = []
        for _ in range(TIMES):
            begun = process_time()
            parse(text, known, servers_known, failures.said)
            took.append((process_time() - begun) * 1000)
        worst = max(worst, min(took))
        print(f"{min(took):7.1f} ms  {len(text):>9} characters  {name}")
    print(f"{worst:7.1f} ms  at worst (of {TIMES} runs the quickest each)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
