"""`ci-bot run` without the container: refused, and where it is allowed the token is kept apart.

The project's code then has the bot's own uid. It looks where the kernel shows what processes hold:
/proc/PID/environ, which keeps what a process was started with, and /proc/PID/mem.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY, missing
from tests.e2e.job import RUNTIME_TOKEN, Job, Runner
from tests.github_standin.event_parts import PullFacts
from tests.github_standin.events import pull_request
from tests.github_standin.local_git import LocalGit
from tests.security.test_hostile_probe import interpreter

NOBODY = (61_900 + os.getpid() % 90, 61_900)
TOKEN = "ghs_" + "uncagedrun" * 4
# Held by a process beside the bot, which any program of the same user can look into.
DECOY = "decoy-" + "0123456789" * 3
ALLOWED = {"CI_BOT_ALLOW_UNCAGED": "true"}

CONFIG = """\
gateways:
  main:
    connection: {type: duckdb}
model_defaults: {dialect: duckdb, start: 2024-01-01}
"""
MODEL = "MODEL (name a.victim, kind FULL);\nSELECT @loot() AS one\n"
MACRO = '''
import json
import os
from pathlib import Path

from sqlmesh import macro

SECRETS = {parts}


def memory(process):
    """Everything that can be read of a process's memory, region by region."""
    with open(process / "mem", "rb", buffering=0) as file:
        for line in (process / "maps").read_text().splitlines():
            span, rights, *_ = line.split()
            if "r" not in rights or line.endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            try:
                file.seek(start)
                yield file.read(min(end - start, 64_000_000))
            except (OSError, ValueError, OverflowError):
                continue


def search():
    own = os.getpid()
    secrets = {{name: "".join(parts).encode() for name, parts in SECRETS.items()}}
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal() or int(process.name) == own:
            continue
        for where in ("environ", "mem"):
            try:
                texts = [(process / "environ").read_bytes()] if where == "environ" else memory(process)
                for text in texts:
                    found += [
                        [name, where, int(process.name)] for name in secrets if secrets[name] in text
                    ]
            except OSError:
                continue
    return found


@macro()
def loot(evaluator):
    place = Path({file!r})
    seen = dict(uid=os.getuid(), parent=os.getppid(), found=search())
    place.write_text(json.dumps(seen))
    return "1"
'''


@pytest.fixture
def ground() -> Iterator[Path]:
    """A directory of a user who is not root: root may look into everything."""
    if os.geteuid() != 0:
        missing("a run as another user needs root")
    with tempfile.TemporaryDirectory(prefix="ci-bot-uncaged-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture
def decoy() -> Iterator[int]:
    """A process of that user with a secret in its environment; its pid."""
    with subprocess.Popen(
        ["/bin/sleep", "300"],
        env={"DECOY": DECOY},
        user=NOBODY[0],
        group=NOBODY[1],
        extra_groups=[],
    ) as process:
        yield process.pid
        process.kill()


def halves(secret: str) -> list[str]:
    """In two parts, so that finding one's own source is no theft."""
    return [secret[:9], secret[9:]]


def make_project(root: Path, loot: Path) -> PullFacts:
    """A pull request of a fork, which is reviewed against its base branch."""
    git = LocalGit(root)
    secrets = {"token": halves(TOKEN), "runtime": halves(RUNTIME_TOKEN), "decoy": halves(DECOY)}
    macro = MACRO.format(parts=secrets, file=str(loot))
    files = {"config.yaml": CONFIG, "macros/__init__.py": "", "macros/loot.py": macro}
    git.commit({name: text.encode() for name, text in files.items()}, "base")
    base = git("rev-parse", "HEAD")
    git("checkout", "-q", "-b", "feature")
    git.commit({"models/victim.sql": MODEL.encode()}, "head")
    head = git("rev-parse", "HEAD")
    git("checkout", "-q", "--detach", base)
    git("merge", "-q", "--no-ff", "-m", "merge", head)
    return PullFacts(
        head_repo="stranger/warehouse",
        head_sha=head,
        base_sha=base,
        merge_sha=git("rev-parse", "HEAD"),
    )


def run_as_nobody(ground: Path, variables: Mapping[str, str]) -> tuple[Any, str]:
    """`ci-bot run` under a uid of its own; what the project's code found, and the log."""
    loot = ground / "found.json"
    python = interpreter(ground)
    facts = make_project(ground / "workspace", loot)
    for name in ("home", "tmp", "commands"):
        (ground / name).mkdir()
    for name in ("output", "step_summary", "env", "path", "state"):
        (ground / "commands" / name).touch()
    (ground / "event.json").write_text(json.dumps(pull_request("opened", facts)), "utf-8")
    runner = Runner(
        api_url="https://api.github.com", repository=facts.repo, token=TOKEN, home=ground
    )
    job = Job("pull_request", "", sha=str(facts.merge_sha), run_id=1, variables=variables)
    environment = runner._environment(job, ground, ground / "workspace", ground / "event.json")
    for path in (ground, *ground.rglob("*")):
        if not path.is_symlink():
            os.chown(path, *NOBODY)
    done = subprocess.run(
        [python, "-X", "utf8", "-m", "ci_bot", "run"],
        cwd=ground / "workspace",
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        user=NOBODY[0],
        group=NOBODY[1],
        extra_groups=[],
    )
    assert loot.exists(), f"{done.stdout}\n{done.stderr}"
    return json.loads(loot.read_text("utf-8")), done.stdout


@pytest.mark.slow
def test_uncaged__the_projects_code_finds_no_token_in_any_process(ground: Path, decoy: int) -> None:
    variables = {
        **ALLOWED,
        # What the runner sets for a container action, and what people set themselves.
        "INPUT_GITHUB-TOKEN": TOKEN,
        "GITHUB_TOKEN": TOKEN,
        "EXTRAHEADER": f"Authorization: Bearer {TOKEN}",
    }

    seen, log = run_as_nobody(ground, variables)

    assert seen["uid"] == NOBODY[0], "root may look into everything"
    where = {tuple(entry[:2]) for entry in seen["found"] if entry[2] == decoy}
    assert where == {("decoy", "environ"), ("decoy", "mem")}, "the search finds nothing at all"
    assert [entry for entry in seen["found"] if entry[0] != "decoy"] == []
    assert seen["parent"] not in {entry[2] for entry in seen["found"]}
    assert "::warning::CI_BOT_ALLOW_UNCAGED=true" in log


@pytest.mark.parametrize("value", ["", "1", "yes", "True", "false"])
@pytest.mark.parametrize("event", ["pull_request", "push"])
def test_uncaged__is_refused_unless_that_is_said(tmp_path: Path, value: str, event: str) -> None:
    runner = Runner(
        api_url="https://api.github.com", repository="acme/warehouse", token=TOKEN, home=tmp_path
    )
    job = Job(
        event,
        pull_request("opened"),
        run_id=1,
        variables={"CI_BOT_ALLOW_UNCAGED": value},
    )

    outcome = runner.run(job, tmp_path)

    assert outcome.exit_code == 2, outcome.stdout
    assert outcome.outputs["reason-code"] == "no_container"
    assert len(outcome.errors) == 1
    assert "not in the action's container" in outcome.errors[0]
    assert "CI_BOT_ALLOW_UNCAGED=true" in outcome.errors[0]


def test_uncaged__outside_of_a_workflow_needs_no_word(tmp_path: Path) -> None:
    runner = Runner(
        api_url="https://api.github.com", repository="acme/warehouse", token=TOKEN, home=tmp_path
    )
    job = Job("push", {}, run_id=1, variables={"GITHUB_ACTIONS": "", "CI_BOT_ALLOW_UNCAGED": ""})

    outcome = runner.run(job, tmp_path)

    assert outcome.exit_code == 0, outcome.stdout
    assert outcome.annotations("warning") == []


def test_allowed__is_warned_of_in_every_run(tmp_path: Path) -> None:
    runner = Runner(
        api_url="https://api.github.com", repository="acme/warehouse", token=TOKEN, home=tmp_path
    )

    for _ in range(2):
        outcome = runner.run(Job("push", {}, run_id=1, variables=ALLOWED), tmp_path)
        (warning,) = outcome.annotations("warning")
        assert "runs as the same user as the bot" in warning


HOLDER = """
import os, subprocess, sys, time
from ci_bot.bot.sandbox.process_secrecy import keep_secrets_of_action
if sys.argv[1] == "keep":
    keep_secrets_of_action(os.environ, ["GIVEN", "ALSO-GIVEN", "ABSENT"])
print(sorted(name for name in os.environ if name in {"GIVEN", "ALSO-GIVEN", "HEADER", "OTHER"}))
child = subprocess.run(["/usr/bin/env"], capture_output=True, text=True)
print(child.stdout.count("held-secret"), flush=True)
time.sleep(300)
"""


@pytest.mark.parametrize("way", ["keep", "show"])
def test_keep_secrets__another_process_of_the_user_reads_nothing(ground: Path, way: str) -> None:
    secret = "held-secret-" + "0123456789"
    variables = {
        "GIVEN": secret,
        "ALSO-GIVEN": f"{secret}-2",
        "HEADER": f"Bearer {secret}",
        "OTHER": "harmless",
        "PYTHONPATH": str(REPOSITORY),
    }
    with subprocess.Popen(
        [interpreter(ground), "-c", HOLDER, way],
        env=variables,
        stdout=subprocess.PIPE,
        text=True,
        user=NOBODY[0],
        group=NOBODY[1],
        extra_groups=[],
    ) as holder:
        assert holder.stdout is not None
        left, children = holder.stdout.readline().strip(), holder.stdout.readline().strip()
        for_others = [read_as_nobody(f"/proc/{holder.pid}/{name}") for name in ("environ", "mem")]
        for_root = Path(f"/proc/{holder.pid}/environ").read_bytes()
        holder.kill()

    if way == "keep":
        assert (left, children) == ("['OTHER']", "0")
        assert for_others == ["PermissionError", "PermissionError"]
        assert secret.encode() not in for_root
        assert b"OTHER=harmless" in for_root
    else:
        assert children == "3", "what the test looks for would not be there in any case"
        assert for_others == ["read", "read"]
        assert secret.encode() in for_root


def read_as_nobody(path: str) -> str:
    """What comes of opening a file as the user: `read`, or the exception's name."""
    code = (
        "import sys\n"
        "try:\n    open(sys.argv[1], 'rb').close()\n    print('read')\n"
        "except OSError as error:\n    print(type(error).__name__)\n"
    )
    done = subprocess.run(
        ["/usr/bin/python3", "-c", code, path],
        capture_output=True,
        text=True,
        check=True,
        user=NOBODY[0],
        group=NOBODY[1],
        extra_groups=[],
    )
    return done.stdout.strip()
