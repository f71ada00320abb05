"""axe-core, Deque's rules for accessible pages, from npm by the hash in `npm/package-lock.json`.

Kept in the directory of the tests' parts; the first test that asks brings it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.browser import Tab
from tests.github_standin.install import find_npm
from tests.github_standin.parts import PartsMissingError
from tests.maven import parts_directory

MANIFEST = Path(__file__).parent / "npm"
# The rules of WCAG 2.2 up to AA, and what axe's makers call best practice.
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


def read_axe() -> str:
    """axe-core's script; brought if it is not there.

    Raises:
        PartsMissingError: There is no npm, or it could not bring the script; with npm's words.
    """
    lock = hashlib.sha256((MANIFEST / "package-lock.json").read_bytes()).hexdigest()
    home = parts_directory(dict(os.environ)) / f"axe-{lock[:16]}"
    script = home / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        home.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(MANIFEST / name, home / name)
        command, path = find_npm(os.environ.get("PATH", os.defpath))
        done = subprocess.run(
            [*command, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=home,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise PartsMissingError(f"npm could not install axe-core:\n{done.stderr[-2000:]}")
    return script.read_text("utf-8")


def load_axe(tab: Tab, script: str) -> None:
    """Puts axe beside the page that is open."""
    tab.ask(f"{{ {script} }}; true")


def list_violations(tab: Tab, rule: str | None = None) -> list[str]:
    """What axe finds wrong in the page as it is shown now: the rule, what it says, and where.

    Args:
        rule: The only rule to check; all of `TAGS` without it.
    """
    wanted = {"type": "rule", "values": [rule]} if rule else list(TAGS)
    found: list[dict[str, Any]] = tab.ask(
        f"axe.run(document, {{runOnly: {json.dumps(wanted)}, resultTypes: ['violations']}})"
        ".then(found => found.violations.map(each => ({rule: each.id, says: each.help,"
        " places: each.nodes.slice(0, 5).map(node => node.target.join(' ') + ': '"
        " + node.html.slice(0, 160) + ' ' + node.failureSummary.slice(0, 200))})))"
    )
    return [f"{each['rule']}: {each['says']}: {each['places']}" for each in found]
