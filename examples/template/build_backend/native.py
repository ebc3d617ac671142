"""Compiles csrc/*.c into the extension module, for the stable ABI and so for every Python from 3.11 on."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

MEMBER = "tinyserve/_native.abi3.so"
FLAGS = ["-O2", "-std=c11", "-fPIC", "-fvisibility=hidden", "-Wall", "-Werror=implicit-function-declaration"]
MACOS = "11.0"


def compile_extension():
    simulate_a_large_build()
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "_native.so")
        run([*compiler(), *FLAGS, *link_flags(), "-o", str(target), *sources()])
        return target.read_bytes()


def sources():
    return sorted(path.as_posix() for path in Path("csrc").glob("*.c"))


def compiler():
    if "CC" in os.environ:
        return shlex.split(os.environ["CC"])
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    raise SystemExit("tinyserve: no C compiler found (cc, gcc, clang): install one or name it in CC")


def link_flags():
    if sys.platform == "darwin":
        return ["-bundle", "-undefined", "dynamic_lookup", f"-mmacosx-version-min={MACOS}"]
    return ["-shared", "-s"]


def run(command):
    status = subprocess.run(command).returncode
    if status:
        raise SystemExit(f"tinyserve: the C compiler failed with status {status}: {shlex.join(command)}")


def wheel_tag():
    return f"cp311-abi3-{platform_tag()}"


def platform_tag():
    if sys.platform == "darwin":
        return f"macosx_{MACOS.replace('.', '_')}_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def simulate_a_large_build():
    """Waits for TINYSERVE_BUILD_SECONDS, as a build of many kernels would."""
    time.sleep(float(os.environ.get("TINYSERVE_BUILD_SECONDS", "0")))
