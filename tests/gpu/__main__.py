"""`make test-gpu`: torch on CUDA as a tiny server, with a leased card, in the process sandbox. For machines with a GPU.

It is no part of `make test`. Where it cannot run it says so, and why, and ends with status 0.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from uv import find_uv_bin

from tests.repositories import NewCommit, build_repository
from worker import contract
from worker.assembly import make_pipeline
from worker.contract import Limits, Outcome, ProbeOrder, Reproduction, Sandbox, Serve, Source, gpu_class
from worker.doctor import as_text
from worker.doctor.cards import cards as cards_of
from worker.gpus import Nvml
from worker.pipeline import Pipeline
from worker.run.stop import Stop
from worker.run.view import interpreter
from worker.settings import Settings

#: Where torch is put when the interpreter of the sandbox has none.
OWN = Path(sys.prefix, "torch")
SERVER = """
import http.server, os, torch

ones = torch.ones(1000, 1000, device="cuda")

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        told = f"{torch.cuda.device_count()} card, {int((ones + ones).sum().item())}, {torch.cuda.get_device_name(0)}"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(told.encode())

http.server.HTTPServer(("127.0.0.1", int(os.environ["FIRSTBAD_PORT"])), Handler).serve_forever()
"""
CHECK = """python3 -c "import urllib.request as r; print(r.urlopen('$FIRSTBAD_URL').read().decode())" """


class DidNotRun(Exception):
    """Why there is nothing to be tried here."""


def main() -> int:
    try:
        said, right = check()
        sys.stdout.writelines(as_text(finding) for finding in cards_of(Settings()))
    except DidNotRun as why:
        said, right = f"did not run: {why}", True
    sys.stdout.write(f"test-gpu: {said}\n")
    return 0 if right else 1


def check() -> tuple[str, bool]:
    """What came of it, and whether that is right. Errors: DidNotRun."""
    cards = Nvml()
    if not cards.inventory:
        raise DidNotRun("NVIDIA's driver is not there, or finds no GPU")
    torch = folder_of_torch()
    with tempfile.TemporaryDirectory() as folder:
        pipeline = make_pipeline(Settings(work_dir=Path(folder, "work"), allow_file_repos=True, visible=(torch,)))
        result = pipeline.probe(order(Path(folder, "repository"), cards.inventory[0], torch), Stop())
        assert result is not None
        if result.fault is not None:
            return f"fault {result.fault.kind}: {result.fault.message}. {result.fault.advice}", False
        assert result.outcome is not None
        return judged(pipeline, result.outcome)


def judged(pipeline: Pipeline, outcome: Outcome) -> tuple[str, bool]:
    said = outcome.log.last_lines[-1] if outcome.log and outcome.log.last_lines else ""
    held = pipeline.site.gpus.held_by(pipeline.site.gpus.inventory[:1])
    if outcome.exit_status != 0 or not outcome.ready or not said.startswith("1 card, 2000000, "):
        return f"it went wrong in {outcome.ended_in}: {said}\n{outcome.environment}", False
    if held:
        return f"the card is not free again: {held}", False
    facts = outcome.environment
    state = ", ".join(f"{name} {facts.get(name, 'not told')}" for name in ("gpu_clock_mhz", "gpu_temperature_c"))
    told = f"driver {pipeline.site.gpus.driver}; {state}; throttled: {facts.get('throttled', 'no')}"
    return f"passed: {said}, {told}; {facts['not_isolated']} not isolated", True


def order(repository: Path, card: contract.Gpu, torch: Path) -> ProbeOrder:
    (sha,) = build_repository(repository, [NewCommit(files={"server.py": SERVER})])
    serve = Serve(command="python3 -u server.py", within_s=300.0, ready_http="/")
    return ProbeOrder(
        bisection="test-gpu",
        probe="test-gpu",
        attempt=1,
        source=Source(repo=str(repository), sha=sha, mirror=str(repository / ".git")),
        reproduction=Reproduction(serve=serve, check=CHECK),
        env={"PYTHONPATH": str(torch)},
        sandbox=Sandbox(kind="process"),
        limits=Limits(timeout_s=600.0),
        gpus=contract.Gpus(count=1, model=gpu_class(card.model)),
    )


def folder_of_torch() -> Path:
    """That the sandbox's own interpreter has, else one of its own. Errors: DidNotRun."""
    asked = [str(interpreter()), "-c", "import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])"]
    found = subprocess.run(asked, capture_output=True, text=True)
    if found.returncode == 0:
        return Path(found.stdout.strip())
    if not (OWN / "torch").is_dir():
        sys.stdout.write(f"test-gpu: installing torch into {OWN}\n")
        command = [find_uv_bin(), "pip", "install", "--quiet", "--target", str(OWN), "torch", "numpy"]
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode:
            raise DidNotRun(f"torch cannot be installed: {made.stderr.strip()[-500:]}")
    return OWN


if __name__ == "__main__":
    sys.exit(main())
