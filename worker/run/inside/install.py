# ruff: noqa: PTH110, PTH118, UP031 (see __init__)
"""Installs: an environment of dependencies for many runs, or a wheel into the virtual environment of this one."""

from __future__ import annotations

import os

from .packages import holds, join, of_base, of_venv, own_pip, project, sites, visible
from .processes import Fault, Run, tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .processes import Status

DONE = (0, None)
#: A shell's word for what cannot be run, such as a program made for another libc.
NOT_RUN = (127, None)


class Installer:
    """uv where it runs, else pip. `spare`: a folder in which it is looked for last."""

    def __init__(self, run: Run, spare: str, work: str) -> None:
        self.run, self.work = run, work
        python = tool("python3", run.env["PATH"])
        if python is None:
            raise Fault("venv", "there is no python3 in the sandbox", "Install python3.")
        self.python = python
        self.uv = tool("uv", run.env["PATH"] + ":" + spare)

    def make(self, folder: str, *options: str) -> None:
        """A virtual environment. Errors: Fault."""
        status: Status = NOT_RUN
        if self.uv is not None:
            status = self.run.call([self.uv, "venv", "--quiet", *options, "--python", self.python, folder], self.work)
        if status == NOT_RUN:
            self.uv = None
            status = self.run.call([self.python, "-m", "venv", *options, folder], self.work)
        if status != DONE:
            advice = "Install python3-venv or uv; the disk may be full."
            raise Fault("venv", "no virtual environment could be made", advice)

    def put(self, folder: str, *arguments: str, offline: bool) -> Status:
        if self.uv is not None:
            argv = [self.uv, "pip", "install", *(["--offline"] if offline else []), "--python", folder]
        else:
            argv = [os.path.join(folder, "bin", "pip"), "install", *(["--no-index"] if offline else [])]
        return self.run.call([*argv, *arguments], self.work)


def prepare(run: Run, root: str) -> Status:
    """An environment of the requirements in the job's folder `in`, for all runs that have the same ones."""
    run.enter("environment")
    inputs, environment = os.path.join(root, "in"), place(root)
    as_of = run.order["environment"]["as_of"]
    installer = Installer(run, os.path.join(root, "bin"), os.path.join(root, "work"))
    installer.make(environment)
    wanted = ["-r", os.path.join(inputs, "requirements.txt")]
    if os.path.exists(os.path.join(inputs, "constraints.txt")):
        wanted += ["-c", os.path.join(inputs, "constraints.txt")]
    if installer.uv is not None:
        # Runs cannot write there, so each of them would compile everything anew.
        wanted += ["--compile-bytecode", *(["--exclude-newer", as_of] if as_of is not None else [])]
    elif as_of is not None:
        message = "dependencies as of a date need uv, which neither is in the sandbox nor runs there when it is brought"
        raise Fault("no-uv", message, "Install uv in the image, or submit with `deps: {as_of: today}`.")
    return installer.put(environment, *wanted, offline=run.order["offline"])


def install(run: Run, root: str, wheel: str) -> Status:
    """A virtual environment with the wheel, on top of the sandbox's own packages; PATH leads to it from then on."""
    order, work = run.order, os.path.join(root, "work")
    venv = os.path.join(work, "venv")
    installer = Installer(run, os.path.join(root, "bin"), work)
    installer.make(venv, "--system-site-packages")
    # First the wheel alone: the same version among the sandbox's own packages would else be taken for it.
    anyway = ["--reinstall-package", project(wheel)] if installer.uv is not None else ["--force-reinstall"]
    status = installer.put(venv, *anyway, "--no-deps", wheel, offline=order["offline"])
    if status == DONE and order.get("resolve"):
        status = installer.put(venv, wheel, offline=order["offline"])
    if status != DONE:
        return status
    if not holds(venv, project(wheel)):
        raise Fault("install", "the wheel is not in the virtual environment", "Look at the image's installer.")
    return complete(run, root, venv, installer.python, project(wheel))


def complete(run: Run, root: str, venv: str, python: str, own: str) -> Status:
    """Joins what else is to be seen there, says what that is, and what is missing."""
    joined = [place(root)] if run.order.get("joined") else []
    # One that was made by the Python of another sees only what that one was made from.
    below = [*joined, *of_venv(python)]
    run.env["PATH"] = ":".join([*(os.path.join(folder, "bin") for folder in (venv, *joined)), run.env["PATH"]])
    run.env["VIRTUAL_ENV"] = venv
    for folder in below:
        join(venv, folder)
    base = of_base(python)
    found = visible([*sites(venv), *(site for folder in below for site in sites(folder)), *base])
    if "pip" in found:
        own_pip(venv)
    found.pop(own.replace("_", "-"), None)
    run.installed = found
    missing = [name for name in run.order.get("requires") or [] if name not in found and base]
    if missing:
        run.say("the sandbox has no %s, and nothing is fetched for this run" % ", ".join(missing))
        return (1, None)
    return DONE


def place(root: str) -> str:
    """Of the environment, the same in preparation and run: where there is no view of its own, a link leads to it."""
    return os.path.realpath(os.path.join(root, "env"))
