"""What signs mean: the table by which what a log shows is held against the node, the request or the commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Means(StrEnum):
    """`elsewhere`: the node's fault, so another node tries it. `later`: what it needs is away, so it is tried again
    after a while. `out`: the same, and that node gets no more probes. `hopeless`: no retry helps, so the bisection is
    refused. `skip`: this commit cannot be tried. `own day`: the dependencies do not fit, so it is tried once more with
    those of its own day, and then skipped. `held`: a fault when another process holds the GPU, else nothing."""

    ELSEWHERE = "elsewhere"
    LATER = "later"
    OUT = "out"
    HOPELESS = "hopeless"
    SKIP = "skip"
    OWN_DAY = "own day"
    HELD = "held"


@dataclass(frozen=True)
class Meaning:
    """`what`: the sentence for people. `commits`: a commit may do this too, so that what fails in this way on every
    attempt is judged like any other failure. `anywhere`: counts in whatever line of the log it stands, and not only
    where the root failure says it."""

    means: Means
    what: str
    advice: str
    commits: bool = False
    anywhere: bool = False


_E, _L, _O, _H, _S = Means.ELSEWHERE, Means.LATER, Means.OUT, Means.HOPELESS, Means.SKIP

#: Of several signs the first one here decides: NCCL cannot start either where shared memory is used up.
MEANINGS: Mapping[str, Meaning] = {
    "gpu-broken": Meaning(
        _O,
        "a GPU or its link is broken",
        "look at the node's kernel log, then bring it back",
        commits=True,
        anywhere=True,
    ),
    "gpu-missing": Meaning(_E, "the run found no GPU", "install the driver and the vendor's container runtime there"),
    "gpu-memory-wanted": Meaning(Means.HELD, "the GPU had less free memory than the server wants", "free the GPU"),
    "gpu-out-of-memory": Meaning(Means.HELD, "the GPU's memory was used up", "free the GPU"),
    "driver-too-old": Meaning(
        _E, "the driver is older than the CUDA runtime", "update the driver of that node", commits=True
    ),
    "no-kernel-image": Meaning(
        _E, "there is no kernel image for this GPU", "name a fitting GPU by resources: {gpu: …}", commits=True
    ),
    "disk-full": Meaning(_E, "no space left on the node", "free space on the node"),
    "shm-full": Meaning(_S, "shared memory was used up", "give it more by resources: {shm: 16GiB}"),
    "nccl-init": Meaning(_E, "NCCL could not start", "look at the node's links and interfaces", commits=True),
    "nccl-watchdog": Meaning(_E, "NCCL's watchdog ended a collective operation", "look at the node", commits=True),
    "engine-down": Meaning(_E, "the container engine did not answer", "start the container engine of that node"),
    "dns": Meaning(_E, "a name could not be resolved", "look at the node's resolver, or allow the run a network"),
    "clock": Meaning(_E, "the node's clock is wrong", "set the node's clock"),
    "too-many-files": Meaning(_E, "too many open files", "raise the node's limit of open files", commits=True),
    "port-in-use": Meaning(_L, "the port was taken", "let the command use $FIRSTBAD_PORT", commits=True),
    "download": Meaning(_L, "a download failed", "see whether the server answers, or keep models on the nodes"),
    "image-pull": Meaning(_L, "an image could not be pulled", "pull it on the node, or log in to the registry there"),
    "model-gated": Meaning(
        _H, "the model is gated or its token is missing", "get access, and give it by secrets: [HF_TOKEN]"
    ),
    "model-missing": Meaning(_H, "there is no such model", "correct the model's name or revision"),
    "killed-by-oom": Meaning(
        _S, "a process was killed for want of memory", "give it more by resources: {memory: …}", anywhere=True
    ),
    "test-missing": Meaning(_S, "the test is not in this commit", "bring the test along in script:"),
    "drift": Meaning(
        Means.OWN_DAY, "the dependencies do not fit this commit", "say deps: {as_of: commit}", commits=True
    ),
}
