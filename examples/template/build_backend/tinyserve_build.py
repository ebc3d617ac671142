"""The build backend (PEP 517): compiles csrc/ and packs it with the Python files. Needs a C compiler only."""

import base64
import hashlib
import io
import tarfile
import tomllib
import zipfile
from pathlib import Path

import native

EPOCH = (2020, 1, 1, 0, 0, 0)


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = read_project()
    members = python_files() | {native.MEMBER: native.compile_extension()}
    tag = native.wheel_tag()
    members |= dist_info(project, tag, members)
    name = f"{project['name']}-{project['version']}-{tag}.whl"
    write_wheel(Path(wheel_directory, name), members)
    return name


def build_sdist(sdist_directory, config_settings=None):
    project = read_project()
    stem = f"{project['name']}-{project['version']}"
    files = ["pyproject.toml", "README.md", "LICENSE", "build_backend", "csrc", "tinyserve"]
    with tarfile.open(Path(sdist_directory, f"{stem}.tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(*sdist_metadata(project, stem))
        for name in files:
            archive.add(name, f"{stem}/{name}")
    return f"{stem}.tar.gz"


def read_project():
    return tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]


def python_files():
    return {path.as_posix(): path.read_bytes() for path in Path("tinyserve").rglob("*.py")}


def dist_info(project, tag, members):
    folder = f"{project['name']}-{project['version']}.dist-info"
    scripts = "".join(f"{name} = {target}\n" for name, target in sorted(project["scripts"].items()))
    wheel = f"Wheel-Version: 1.0\nGenerator: tinyserve_build\nRoot-Is-Purelib: false\nTag: {tag}\n"
    info = {
        f"{folder}/METADATA": metadata(project).encode(),
        f"{folder}/WHEEL": wheel.encode(),
        f"{folder}/entry_points.txt": f"[console_scripts]\n{scripts}".encode(),
        f"{folder}/LICENSE": Path("LICENSE").read_bytes(),
    }
    return info | {f"{folder}/RECORD": record(members | info, f"{folder}/RECORD")}


def metadata(project):
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License: {project['license']['text']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {requirement}" for requirement in project["dependencies"]),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + Path(project["readme"]).read_text(encoding="utf-8")


def record(members, own_name):
    lines = [f"{name},sha256={digest(data)},{len(data)}" for name, data in sorted(members.items())]
    return ("\n".join([*lines, f"{own_name},,"]) + "\n").encode()


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write_wheel(path, members):
    # The metadata goes last, as the format asks; fixed dates and order make the same input the same file.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(members, key=lambda name: (".dist-info/" in name, name.endswith("/RECORD"), name)):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name == native.MEMBER else 0o644) << 16
            archive.writestr(entry, members[name])


def sdist_metadata(project, stem):
    data = metadata(project).encode()
    entry = tarfile.TarInfo(f"{stem}/PKG-INFO")
    entry.size = len(data)
    return entry, io.BytesIO(data)
