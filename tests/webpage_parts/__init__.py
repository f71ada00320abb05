"""The parts of others in the report's page: fetched by their hashes, and put beside our own files.

    python -m tests.webpage_parts

Versions and hashes stand in `npm/package-lock.json`; `SHA256SUMS` beside the files says what came
out of it, and a test compares. To take a newer version: change `npm/package.json`, run
`npm install --package-lock-only --ignore-scripts` there, then this.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.github_standin.install import find_npm

HERE = Path(__file__).parent
VENDOR = HERE.parents[1] / "templates" / "webpage" / "vendor"
SUMS = VENDOR / "SHA256SUMS"


@dataclass(frozen=True)
class Part:
    """A file of an npm package, and the package's licence, which goes into its first lines."""

    package: str
    source: str
    licence: str


PARTS: Mapping[str, Part] = {
    "diff.js": Part("diff", "dist/diff.min.js", "LICENSE"),
    "panzoom.js": Part("@panzoom/panzoom", "dist/panzoom.min.js", "MIT-License.txt"),
}


def build(home: Path) -> dict[str, str]:
    """Each file as it belongs into the page, from packages that npm has checked by their hashes."""
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(HERE / "npm" / name, home / name)
    command, path = find_npm(os.environ.get("PATH", os.defpath))
    subprocess.run(
        [*command, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=home,
        env={**os.environ, "PATH": path},
        check=True,
    )
    return {name: _text(home / "node_modules", part) for name, part in PARTS.items()}


def _text(modules: Path, part: Part) -> str:
    package = modules / part.package
    version = json.loads((package / "package.json").read_text("utf-8"))["version"]
    licence = (package / part.licence).read_text("utf-8").strip().replace("*/", "* /")
    body = (package / part.source).read_text("utf-8").rstrip()
    return f"/*! {part.package} {version}\n\n{licence}\n*/\n{body}\n"


def sums(texts: Mapping[str, str]) -> str:
    """The hashes as `sha256sum` writes them."""
    rows = (
        f"{hashlib.sha256(texts[name].encode()).hexdigest()}  {name}\n" for name in sorted(texts)
    )
    return "".join(rows)
