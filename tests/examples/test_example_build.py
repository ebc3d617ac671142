"""Wheels of the example: built offline, by a compiler alone, the same each time."""

from __future__ import annotations

import base64
import csv
import hashlib
import shlex
import shutil
import time
import zipfile
from pathlib import Path

from examples.generate import Example
from tests.examples.running import Builds, build, install, is_healthy, run, speculative

NATIVE = "tinyserve/_native.abi3.so"


def test_a_wheel_lists_its_members_with_their_hashes(example: Example, builds: Builds) -> None:
    with zipfile.ZipFile(builds.wheel(example.good)) as wheel:
        record = "tinyserve-0.1.0.dist-info/RECORD"
        rows = list(csv.reader(wheel.read(record).decode().splitlines()))
        assert sorted(row[0] for row in rows) == sorted(wheel.namelist())
        for name, digest, size in rows:
            data = wheel.read(name)
            sha256 = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, size) == (("", "") if name == record else (f"sha256={sha256}", str(len(data))))
        assert "Requires-Dist" not in wheel.read("tinyserve-0.1.0.dist-info/METADATA").decode()


def test_a_wheel_is_for_every_python_from_3_11_on_this_platform(example: Example, builds: Builds) -> None:
    name, version, *tag = builds.wheel(example.bad).stem.split("-")
    assert (name, version, *tag[:2]) == ("tinyserve", "0.2.0", "cp311", "abi3")
    with zipfile.ZipFile(builds.wheel(example.bad)) as wheel:
        assert f"Tag: {'-'.join(tag)}\n" in wheel.read("tinyserve-0.2.0.dist-info/WHEEL").decode()
        assert NATIVE in wheel.namelist()


def test_the_same_commit_gives_the_same_bytes_wherever_it_is_built(
    example: Example, builds: Builds, tmp_path: Path
) -> None:
    elsewhere = shutil.copytree(builds.source(example.good), tmp_path / "elsewhere")
    assert build(elsewhere, tmp_path / "out").returncode == 0
    [wheel] = (tmp_path / "out").glob("*.whl")
    assert wheel.read_bytes() == builds.wheel(example.good).read_bytes()


def test_an_extension_of_another_native_tree_is_refused(example: Example, builds: Builds, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    assert install(builds.wheel(example.good), venv).returncode == 0
    [native] = venv.glob(f"lib/python*/site-packages/{NATIVE}")
    native.unlink()
    with zipfile.ZipFile(builds.wheel(example.bad)) as other:
        native.write_bytes(other.read(NATIVE))
    done = run(venv / "bin" / "tinyserve", "eval")
    assert done.returncode == 1
    assert "ImportError: tinyserve._native is of version" in done.stderr


def test_a_broken_c_file_fails_the_build_with_the_compilers_own_error(
    zoo: Example, zoo_builds: Builds, tmp_path: Path
) -> None:
    done = build(zoo_builds.source(zoo.commits[2].sha), tmp_path)
    assert done.returncode != 0
    assert "csrc/graphs.c:" in done.stderr
    assert "error:" in done.stderr
    assert "TS_ALIGNMENT" in done.stderr
    assert "the C compiler failed with status" in done.stderr
    assert list(tmp_path.glob("*.whl")) == []
    assert all(zoo_builds.wheel(zoo.commits[number].sha).exists() for number in (1, 3))


def test_a_dependency_that_does_not_exist_fails_the_installation(
    zoo: Example, zoo_builds: Builds, tmp_path: Path
) -> None:
    done = install(zoo_builds.wheel(zoo.commits[4].sha), tmp_path / "venv")
    assert done.returncode != 0
    assert "tinyserve-kernels" in done.stderr
    assert install(zoo_builds.wheel(zoo.commits[5].sha), tmp_path / "later").returncode == 0


def test_cc_names_the_compiler(example: Example, builds: Builds, tmp_path: Path) -> None:
    compiler = tmp_path / "my cc"
    compiler.write_text(f'#!/bin/sh\necho "$@" > "{tmp_path}/arguments"\nexec cc "$@"\n')
    compiler.chmod(0o755)
    done = build(builds.source(example.good), tmp_path / "out", env={"CC": f"{shlex.quote(str(compiler))} -DEXTRA"})
    assert done.returncode == 0, done.stderr
    assert "-DEXTRA" in (tmp_path / "arguments").read_text()


def test_without_a_compiler_the_build_says_so(example: Example, builds: Builds, tmp_path: Path) -> None:
    done = build(builds.source(example.good), tmp_path, env={"CC": "no-such-compiler"})
    assert done.returncode != 0
    assert "no-such-compiler" in done.stderr


def test_a_build_can_be_made_to_take_longer(example: Example, builds: Builds, tmp_path: Path) -> None:
    started = time.monotonic()
    done = build(builds.source(example.good), tmp_path, env={"TINYSERVE_BUILD_SECONDS": "1.5"})
    assert done.returncode == 0
    assert time.monotonic() - started >= 1.5


def test_reverting_the_first_bad_commit_on_bad_mends_it(example: Example, builds: Builds, tmp_path: Path) -> None:
    source = shutil.copytree(builds.source(example.bad), tmp_path / "source")
    patch = run("git", "show", example.first_bad, cwd=example.path).stdout
    (tmp_path / "patch").write_text(patch)
    assert run("git", "apply", "--reverse", tmp_path / "patch", cwd=source).returncode == 0
    assert build(source, tmp_path / "out").returncode == 0
    [wheel] = (tmp_path / "out").glob("*.whl")
    assert install(wheel, tmp_path / "venv").returncode == 0
    assert is_healthy(tmp_path / "venv" / "bin" / "tinyserve", *speculative(2))
