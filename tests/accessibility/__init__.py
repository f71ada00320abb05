"""axe-core, Deque's rules for accessible pages, from npm by the hash in `npm/package-lock.json`.

Kept in the directory of the tests' parts; the first test that asks brings it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.browser import Tab
from tests.github_standin.install import _npm as npm
from tests.maven import parts_directory

MANIFEST = Path(__file__).parent / "npm"
# The rules of WCAG 2.2 up to AA, and what axe's makers call best practice.
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


def read_axe() -> str:
    """axe-core's script; brought where it is not there."""
    lock = hashlib.sha256((MANIFEST / "package-lock.json").read_bytes()).hexdigest()
    home = parts_directory(dict(os.environ)) / f"axe-{lock[:16]}"
    script = home / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        home.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(MANIFEST / name, home / name)
        command, path = npm(os.environ.get("PATH", os.defpath))
        subprocess.run(
            [*command, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=home,
            env={**os.environ, "PATH": path},
            check=True,
        )
    return script.read_text("utf-8")


def list_violations(tab: Tab, axe: str) -> list[str]:
    """What axe finds wrong in the page as it is shown now: the rule, what it says, and where."""
    tab.ask(f"{{ {axe} }}; true")
    found: list[dict[str, Any]] = tab.ask(
        f"axe.run(document, {{runOnly: {list(TAGS)!r}, resultTypes: ['violations']}})"
        ".then(found => found.violations.map(each => ({rule: each.id, says: each.help,"
        " places: each.nodes.slice(0, 5).map(node => node.target.join(' ') + ': '"
        " + node.html.slice(0, 160) + ' ' + node.failureSummary.slice(0, 200))})))"
    )
    return [f"{each['rule']}: {each['says']}: {each['places']}" for each in found]
