"""The docker sandbox: one container a run, with nothing that it does not need. Only this package knows the engine."""

from worker.run.docker.sandbox import DockerSandbox

__all__ = ["DockerSandbox"]
