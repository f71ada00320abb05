"""Installs a project's requirements; runs inside the cage, under the worker's user.

The bot starts it through `bootstrap` with: TARGET REQUIREMENTS... Two steps, because
`pip install --target` takes nothing that the image has for granted: it would install SQLMesh once
more for every project that pins the version that is already there, and PySpark, which its index has
only as source, not at all. So pip first says what is missing, and then exactly these files, by
their hashes, are put into TARGET. Standard library only.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PIP = (sys.executable, "-I", "-X", "utf8", "-m", "pip", "install")
OPTIONS = (
    *("--no-input", "--disable-pip-version-check", "--no-color", "--progress-bar=off"),
    *("--no-cache-dir", "--only-binary=:all:", "--quiet"),
)
INDEX_OPTIONS = ("-i", "--index-url", "--extra-index-url", "--no-index", "--trusted-host", "--pre")
LINK_OPTIONS = ("-f", "--find-links")


def locked(report: dict[str, Any]) -> list[str]:
    """What pip's report says is missing, one requirement a line, with hashes if it knows all."""
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


def index_lines(file: Path) -> list[str]:
    """The lines of a requirements file that say where packages come from."""
    lines: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        option, _, value = line.strip().replace("=", " ", 1).partition(" ")
        if option in LINK_OPTIONS and "://" not in value:
            lines.append(f"{option} {(file.parent / value.strip()).resolve()}")
        elif option in INDEX_OPTIONS or option in LINK_OPTIONS:
            lines.append(line)
    return lines


def main(arguments: list[str]) -> int:
    """Install what is missing; returns pip's exit code."""
    target, *files = (Path(argument) for argument in arguments)
    with tempfile.TemporaryDirectory() as scratch:
        return install(target, files, scratch=scratch)


def install(target: Path, files: list[Path], *, scratch: str) -> int:
    """The two steps."""
    if importlib.util.find_spec("pip") is None:
        print(f"{sys.executable} has no pip, so it cannot install requirements")  # noqa: T201
        return 1
    report, lock = Path(scratch, "pip-report.json"), Path(scratch, "pip-lock.txt")
    wanted = [part for file in files for part in ("--requirement", str(file))]
    found = subprocess.run(
        [*PIP, *OPTIONS, "--dry-run", "--report", str(report), *wanted], check=False
    )
    if found.returncode != 0:
        return found.returncode
    missing = locked(json.loads(report.read_text(encoding="utf-8")))
    print(f"requirements: {len(missing)} packages to install", flush=True)  # noqa: T201
    if not missing:
        return 0
    sources = [line for file in files for line in index_lines(file)]
    lock.write_text("\n".join([*sources, *missing, ""]), encoding="utf-8")
    return subprocess.run(
        [*PIP, *OPTIONS, "--no-deps", "--target", str(target), "--requirement", str(lock)],
        check=False,
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
