"""Installs a project's requirements; runs inside the cage, under the worker's user.

The bot starts it through `bootstrap` with: TARGET REQUIREMENTS SOURCE. It takes two steps, because
`pip install --target` ignores what the image has: it would install SQLMesh again for every project
that pins the version that is already there. PySpark it would not install at all, because the index
has only its source. So pip first lists what is missing, and then exactly these files are put into
TARGET, by their hashes.

SOURCE is a package that is published only as source, with its hash, or empty. If another version of
it is installed, a wheel is built first, with the setuptools that is installed here and not one
that pip would download. The image has drivers whose source needs a compiler under another name, so
an extra that asks for one, such as `sqlmesh[postgres]`, finds it. Standard library only.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PIP = (sys.executable, "-I", "-X", "utf8", "-m", "pip")
QUIET = (
    "--no-input", "--disable-pip-version-check", "--no-color", "--progress-bar=off",
    "--no-cache-dir", "--quiet",
)  # fmt: skip
OPTIONS = (*QUIET, "--only-binary=:all:")
INDEX_OPTIONS = ("-i", "--index-url", "--extra-index-url", "--no-index", "--trusted-host", "--pre")
LINK_OPTIONS = ("-f", "--find-links")
# The same modules, published as wheels: https://www.psycopg.org/docs/install.html
BINARY_OF = {"psycopg2": "psycopg2-binary"}


def list_requirements_missing_in_sandbox(report: Mapping[str, Any]) -> list[str]:
    """Lists what is missing by pip's report, one requirement each, with hashes if all are known."""
    found: list[tuple[str, str | None]] = []
    for item in report.get("install", []):
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        download = item["download_info"]
        text = f"{name} @ {download['url']}" if item.get("is_direct") else f"{name}=={version}"
        hashes = download.get("archive_info", {}).get("hashes", {})
        found.append((text, hashes.get("sha256")))
    if all(sha256 for _, sha256 in found):
        return [f"{text} --hash=sha256:{sha256}" for text, sha256 in found]
    return [text for text, _ in found]


def select_index_lines_for_sandboxed_pip(file: Path) -> list[str]:
    """Selects the lines of a requirements file that say where packages come from."""
    lines: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        option, _, value = line.strip().replace("=", " ", 1).partition(" ")
        if option in LINK_OPTIONS and "://" not in value:
            lines.append(f"{option} {(file.parent / value.strip()).resolve()}")
        elif option in INDEX_OPTIONS or option in LINK_OPTIONS:
            lines.append(line)
    return lines


def is_installed_in_sandbox(source: str) -> bool:
    """Whether the package of `name==version ...` is installed in that version."""
    name, _, version = source.split(" ", 1)[0].partition("==")
    try:
        return importlib.metadata.version(name) == version
    except importlib.metadata.PackageNotFoundError:
        return False


def write_stand_in_wheel_in_sandbox(name: str, *, scratch: Path) -> None:
    """Writes a wheel without modules for a package whose binary form is installed."""
    binary = BINARY_OF[name]
    try:
        version = importlib.metadata.version(binary)
    except importlib.metadata.PackageNotFoundError:
        return
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        f"Requires-Dist: {binary}=={version}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: ci-bot\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    information = f"{name}-{version}.dist-info"
    # Files that are recorded without a hash are not checked; pip checks the wheel as a whole.
    files["RECORD"] = "".join(f"{information}/{file},,\n" for file in [*files, "RECORD"])
    with zipfile.ZipFile(scratch / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for file, text in files.items():
            wheel.writestr(f"{information}/{file}", text)


def build_wheel_in_sandbox(source: str, sources: list[str], *, scratch: Path) -> int:
    """Builds a wheel of `source` in `scratch`; returns pip's exit code."""
    name = source.partition("==")[0]
    print(f"requirements: building {source.split(' ', 1)[0]}", flush=True)
    lock = scratch / "source.txt"
    lock.write_text("\n".join([*sources, source, ""]), encoding="utf-8")
    chosen = ("--no-deps", "--require-hashes", "--no-build-isolation", f"--no-binary={name}")
    places = ("--wheel-dir", str(scratch), "--requirement", str(lock))
    # The build must not find its tools in a directory of the project.
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [*PIP, "wheel", *QUIET, *chosen, *places], env=variables, check=False
    ).returncode


def main(arguments: list[str]) -> int:
    """Installs what is missing; returns pip's exit code."""
    target, file, source = arguments
    with tempfile.TemporaryDirectory() as scratch:
        return install_missing_in_sandbox(Path(target), Path(file), source, scratch=Path(scratch))


def install_missing_in_sandbox(target: Path, file: Path, source: str, *, scratch: Path) -> int:
    """Takes the steps of `main`; returns pip's exit code, or 1 if there is no pip."""
    if importlib.util.find_spec("pip") is None:
        print(f"{sys.executable} has no pip, so it cannot install requirements")
        return 1
    sources = select_index_lines_for_sandboxed_pip(file)
    for name in BINARY_OF:
        write_stand_in_wheel_in_sandbox(name, scratch=scratch)
    if (
        source
        and not is_installed_in_sandbox(source)
        and (code := build_wheel_in_sandbox(source, sources, scratch=scratch))
    ):
        return code
    made = ["--find-links", str(scratch)]
    report, lock = scratch / "pip-report.json", scratch / "pip-lock.txt"
    wanted = [*made, "--requirement", str(file)]
    found = subprocess.run(
        [*PIP, "install", *OPTIONS, "--dry-run", "--report", str(report), *wanted], check=False
    )
    if found.returncode != 0:
        return found.returncode
    missing = list_requirements_missing_in_sandbox(json.loads(report.read_text(encoding="utf-8")))
    print(f"requirements: {len(missing)} packages to install", flush=True)
    if not missing:
        return 0
    lock.write_text("\n".join([*sources, *missing, ""]), encoding="utf-8")
    chosen = ("--no-deps", "--target", str(target), *made, "--requirement", str(lock))
    return subprocess.run([*PIP, "install", *OPTIONS, *chosen], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
