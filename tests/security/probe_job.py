"""The hostile probe project in a job: its repository, what it is told to attack, what it reports."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ci_bot.protocol.review_report import ReviewFacts
from tests.factories import make_report
from tests.github_standin.event_parts import PullFacts
from tests.github_standin.events import pull_request
from tests.github_standin.local_git import LocalGit

PROBE = Path(__file__).with_name("probe")
SECRET = "ghs_" + "probetoken" * 4
RUNTIME_TOKEN = "runtime-credential-of-the-job-0123456789"
EVIL_API = "http://127.0.0.1:9/"
MARKUP = "<img src=x onerror=alert(1)></details>@everyone [x](https://evil.example) ``` | #1"
DOTENV = {
    "GITHUB_API_URL": EVIL_API,
    "PATH": "/nowhere",
    "LD_PRELOAD": "/nowhere/evil.so",
    "PYTHONPATH": "/nowhere",
    "GITHUB_OUTPUT": "/tmp/ci-bot-probe-output",
}
# A trap that git would start by itself, in the repository that the bot reads.
TRAPS = """\
[core]
\tfsmonitor = {script}
\thooksPath = {hooks}
\tpager = {script}
[diff]
\texternal = {script}
[alias]
\trev-parse = !{script}
"""


@dataclass(frozen=True)
class Targets:
    """Places on the machine that the probe attacks, as the worker would see them."""

    write: Sequence[str]
    read: Sequence[str]
    sockets: Sequence[str] = ()


@dataclass(frozen=True)
class ProbeRepository:
    """The checkout that a runner made of the pull request, traps included."""

    root: Path
    facts: PullFacts
    sprung: Path

    def event(self, action: str = "opened") -> dict[str, Any]:
        payload: dict[str, Any] = pull_request(action, self.facts)
        return payload


def make_repository(
    root: Path,
    targets: Targets,
    *,
    outside: Path,
    forge: str | None = None,
    fork: bool = True,
    dotenv: Mapping[str, str] = DOTENV,
) -> ProbeRepository:
    """Commits a harmless base and the hostile head on top, and sets the traps.

    Args:
        outside: A secret file outside of the checkout that links of the project lead to.
    """
    git = LocalGit(root)
    shutil.copytree(PROBE, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    plan = {
        "write": [*targets.write],
        "read": [*targets.read],
        "sockets": [*targets.sockets],
        "links": ["seeds/link.csv", "linked/secret", "up"],
        # In two parts, so that reading its own plan is no theft.
        "secret": [SECRET[:10], SECRET[10:]],
        "dotenv": [*dotenv],
        "forge": forge,
    }
    git.commit({"attack.json": json.dumps(plan).encode()}, "base")
    base = git("rev-parse", "HEAD")
    victim = (root / "models" / "victim.sql").read_text().replace("1 AS one", "2 AS one")
    files = {
        "models/victim.sql": victim.encode(),
        ".env": "".join(f"{name}={value}\n" for name, value in dotenv.items()).encode(),
    }
    if forge in ("identity", "markup"):
        files["forged.json"] = forged(forge)
    git("checkout", "-q", "-b", "feature")
    (root / "seeds").mkdir(exist_ok=True)
    (root / "seeds" / "link.csv").symlink_to(outside)
    (root / "linked").symlink_to(outside.parent)
    (root / "up").symlink_to("../" * 9 + str(outside).lstrip("/"))
    git.commit(files, "head")
    head = git("rev-parse", "HEAD")
    git("checkout", "-q", "--detach", base)
    git("merge", "-q", "--no-ff", "-m", "merge", head)
    merge = git("rev-parse", "HEAD")
    sprung = _set_traps(root)
    facts = PullFacts(head_repo="stranger/warehouse" if fork else "acme/warehouse")
    return ProbeRepository(
        root, replace(facts, head_sha=head, base_sha=base, merge_sha=merge), sprung
    )


def forged(kind: str) -> bytes:
    """An answer that fits the schema, about another pull request or full of markup."""
    report = make_report()
    fields = {name: getattr(report, name, None) for name in ReviewFacts.model_fields}
    known = {name: value for name, value in fields.items() if hasattr(report, name)}
    known |= {"identity": None, "baseline": "base-branch", "activity": "review", "failure": None}
    known |= {"findings": []}
    known["environment"] = "pr_8" if kind == "identity" else "pr_7"
    facts = ReviewFacts.model_construct(**known)
    document = json.loads(facts.model_dump_json(warnings=False))
    if kind == "markup":
        document["notes"] = [MARKUP]
        for change in document["changes"]:
            change |= {"model": MARKUP, "diff": f"```\n{MARKUP}\n::error::evil", "owner": MARKUP}
    raw = json.dumps(document).encode()
    ReviewFacts.model_validate_json(raw)  # it fits the contract, so the schema will not stop it
    return raw


def _set_traps(root: Path) -> Path:
    sprung = root / "sprung"
    script = root / ".git" / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch {sprung} /github/workspace/sprung 2>/dev/null\n")
    script.chmod(0o755)
    hooks = root / ".git" / "traps"
    hooks.mkdir()
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        shutil.copy(script, hooks / name)
    with (root / ".git" / "config").open("a", encoding="utf-8") as file:
        file.write(TRAPS.format(script=script, hooks=hooks))
    cache = root / ".cache" / "models"
    cache.mkdir(parents=True)
    (cache / "planted").write_bytes(b"cos\nsystem\n(S'touch /tmp/ci-bot-probe-pickle'\ntR.")
    return sprung


def probed(log: str) -> dict[str, str]:
    """The probe's own lines in the log: attempt -> what came of it."""
    found = {}
    for line in log.splitlines():
        _, mark, words = line.partition("PROBE ")
        name, colon, outcome = words.rpartition(": ")
        if mark and colon:
            found[name] = outcome
    return found
