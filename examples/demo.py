"""`make demo`: the whole way once. Generates the example repository, starts the service, and finds the commit that
broke its server."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import yaml

from examples.generate import Options, generate, request

FIRSTBAD = Path(sys.executable).with_name("firstbad")
#: The C compiler that `make demo` fetches where the machine has none.
COMPILER = Path(sys.prefix, "compiler", "cc")


def main() -> int:
    arguments = _arguments()
    folder: Path = arguments.folder.absolute()
    document = _request(folder, arguments.sandbox, arguments.image, arguments.width)
    with Service(folder / "home", arguments.port) as url:
        _say(f"the service answers at {url}; its data lie in {folder / 'home'}")
        _say(f"$ firstbad submit --watch {document}")
        ended = subprocess.run([FIRSTBAD, "submit", "--watch", "--url", url, document], check=False)
        if arguments.keep:
            _say("the service goes on until Ctrl-C")
            _until_interrupted()
    _say(f"the service is stopped; look again with: firstbad up --home {folder / 'home'}")
    return ended.returncode


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(".demo"), help="where everything of the demo goes")
    parser.add_argument("--port", type=_port, default=8377, help="of the service, on 127.0.0.1")
    parser.add_argument("--sandbox", choices=("process", "docker"), default="process")
    parser.add_argument("--image", help="for the docker sandbox: an image with python3, bash, cc and uv")
    parser.add_argument("--width", type=int, default=1, help="probes at once")
    parser.add_argument("--keep", action="store_true", help="leave the service running at the end, until Ctrl-C")
    return parser.parse_args()


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; it is a number from 1 to 65535")
    return int(text)


def _request(folder: Path, sandbox: str, image: str | None, width: int) -> Path:
    """The example repository (the same commits each time) and a request about it as a user would write it."""
    repository, document = folder / "tinyserve", folder / "request.yaml"
    _say(f"generating the example repository in {repository}")
    shutil.rmtree(repository, ignore_errors=True)
    example = generate(repository, Options())
    made = request(example)
    made.update(sandbox=sandbox, width=width, **({"image": image} if image else {}))
    if COMPILER.exists() and sandbox == "process":
        made["env"] = {"CC": str(COMPILER)}
    document.write_text(yaml.safe_dump(made, sort_keys=False, width=100))
    return document


class Service:
    """`firstbad up` as a user starts it; leaving the context is Ctrl-C. `environment`: settings besides one's own."""

    def __init__(self, home: Path, port: int, environment: Mapping[str, str] | None = None) -> None:
        self._environment = {**os.environ, **(environment or {})}
        self._command = [FIRSTBAD, "up", "--home", str(home), "--port", str(port)]
        self._log = home.with_suffix(".log")
        self._url = f"http://127.0.0.1:{port}"
        free = port + 1 if port < 65535 else 8377
        self._other_port = f'demo: where its port is taken, try: make demo ARGS="--port {free}"'

    def __enter__(self) -> str:
        if self._answers():
            sys.exit(f"demo: another service answers at {self._url} already\n{self._other_port}")
        with self._log.open("w") as log:
            # A sandbox sees of this machine what the system brings, and what the operator adds.
            visible = {"FIRSTBAD_VISIBLE": str(COMPILER.parent)} if COMPILER.exists() else {}
            environment = {**self._environment, **visible}
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        pause = threading.Event()
        while not self._answers():
            if self._process.poll() is not None:
                sys.exit(f"demo: the service does not start:\n{self._log.read_text()}{self._other_port}")
            pause.wait(0.1)
        return self._url

    def __exit__(self, *failure: object) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/readyz", timeout=5):
                return True
        except OSError:
            return False


def _until_interrupted() -> None:
    threading.Event().wait()


def _say(text: str) -> None:
    print(f"demo: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
