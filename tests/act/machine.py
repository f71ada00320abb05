"""Runs a workflow as a team's repository, or this one, has it: act in the place of GitHub's runner.

From the workflow's file come event filters, `if:`, expressions, permissions' absence, mapping of
secrets and variables, and the order of steps; from action.yml the container. Not GitHub's are the
actions of `stand_ins`, the API (the stand-in), and the job's machine, which is one of our images.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ruamel.yaml

from ci_bot.bot.cli.setup.plan_files import find_action_release

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / ".github" / "examples"
STAND_INS = Path(__file__).resolve().parent / "stand_ins"
OURS = find_action_release(None).repository
_USES = re.compile(r"^\s+(?:- )?uses: ([\w./-]+)@([0-9a-f]{40})", re.M)
MACHINE = "ubuntu-24.04"
MACHINE_ARM = "ubuntu-24.04-arm"
# What GitHub takes and act 0.2.89 does not know, so that it refuses the whole workflow.
NOT_KNOWN_YET = ("      deployment: false\n", "  queue: max\n")


@dataclass(frozen=True)
class Images:
    """Names of the two images that a release names in its two action.yml."""

    full: str
    review: str


@dataclass(frozen=True)
class WorkflowRun:
    """What a run left.

    Attributes:
        exit_code: act's: 0, or 1 where a job failed.
        log: Its JSON lines.
        workspace: The job's checkout, on this machine.
        artifacts: Directory of the uploaded artifacts, each a directory of its name.
    """

    exit_code: int
    log: Sequence[Mapping[str, Any]]
    text: str
    workspace: Path
    artifacts: Path

    def outputs(self, step: str) -> dict[str, str]:
        """The outputs that a step set, by the workflow's id of it."""
        return {
            str(line["name"]): str(line["arg"])
            for line in self.log
            if line.get("command") == "set-output" and step in line.get("stepID", [])
        }

    @property
    def results(self) -> dict[str, str]:
        """How each step that began has ended: its name in the workflow, and act's word."""
        return {
            str(line["step"]): str(line["stepResult"])
            for line in self.log
            if "stepResult" in line and line.get("stage") == "Main"
        }

    @property
    def printed(self) -> str:
        """What the steps printed, as the log of a job shows it."""
        return "\n".join(str(line.get("msg", "")).rstrip() for line in self.log)

    def artifact(self, name: str = "ci-bot-report") -> dict[str, bytes]:
        """The files of an uploaded artifact."""
        return {file.name: file.read_bytes() for file in (self.artifacts / name).iterdir()}


@dataclass(frozen=True)
class ActMachine:
    """A team's repository, as far as its workflows see one.

    Attributes:
        program: act.
        images: What the two actions name.
        engine: Address of the container engine.
        api_url: Where GitHub answers.
        repository: `owner/name`.
        origin: Its git repository, on this machine.
        mounts: Directories that containers see under the same path, as a service on the network.
        edits: What this team writes otherwise in each workflow: a text, and what stands there.
        home: A directory of the machine's own.
        workflows: Directory of the workflows' files.
        volumes: More of what jobs see, in docker's words: `FROM:TO:ro`.
        environment: Variables of the job's machine.
        arm: Image of a job's machine of that architecture, where a workflow has one.
    """

    program: Path
    images: Images
    engine: str
    api_url: str
    repository: str
    origin: Path
    mounts: Sequence[Path]
    edits: Mapping[str, str]
    home: Path
    workflows: Path = EXAMPLES
    volumes: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    arm: str | None = None

    def run(
        self,
        workflow: str,
        event: str,
        payload: Mapping[str, object],
        *,
        token: str,
        sha: str,
        run_id: int,
        actor: str = "author",
        variables: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        timeout: float = 300,
    ) -> WorkflowRun:
        """Runs one workflow for one event to its end.

        Args:
            workflow: Its file.
            event: Its name, as in `pull_request`.
            payload: What GitHub sends with it.
            token: The job's token.
            sha: `github.sha`.
            variables: `vars`.
            secrets: `secrets`, beside the token.
            timeout: Seconds.
        """
        place = self.home / f"run-{run_id}-{workflow.partition('.')[0]}"
        for name in ("workspace", "artifacts", "home"):
            (place / name).mkdir(parents=True)
        # The stand-in of upload-artifact writes as the account of GitHub's machines.
        (place / "artifacts").chmod(0o777)
        (place / "event.json").write_text(json.dumps(payload), encoding="utf-8")
        text = (self.workflows / workflow).read_text("utf-8")
        file = place / workflow
        written = text
        for stands, instead in self.edits.items():
            assert stands in written, f"{workflow} has no {stands!r}"
            written = written.replace(stands, instead)
        for line in NOT_KNOWN_YET:
            written = written.replace(line, "")
        file.write_text(written, encoding="utf-8")
        given = {**(secrets or {}), "GITHUB_TOKEN": token}
        command = [
            self.program, event,
            "--json", "--workflows", file, "--eventpath", place / "event.json",
            "--directory", place / "workspace", "--bind", "--no-skip-checkout", "--rm",
            "--pull=false", "--no-cache-server", "--container-daemon-socket", "-",
            "--action-cache-path", place / "home" / "actions",
            "--platform", f"{MACHINE}={self.images.review}",
            *(("--platform", f"{MACHINE_ARM}={self.arm}") if self.arm else ()),
            # One engine stands for those of all machines, and keeps one image of a name.
            "--concurrent-jobs", "1", "--actor", actor,
            "--container-options", " ".join(self._volumes(place)),
            *(word for uses in self._actions(text, place) for word in ("--local-repository", uses)),
            *(word for name, value in self._variables(sha, run_id, actor).items()
              for word in ("--env", f"{name}={value}")),
            *(word for name, value in (variables or {}).items()
              for word in ("--var", f"{name}={value}")),
            *(word for name in given for word in ("--secret", name)),
        ]  # fmt: skip
        done = subprocess.run(
            command,
            # A secret without a value is taken from here, so that no process list shows it.
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(place / "home"),
                "DOCKER_HOST": self.engine,
                **given,
            },
            cwd=place,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return WorkflowRun(
            exit_code=done.returncode,
            log=list(_json_lines(done.stdout + done.stderr)),
            text=done.stdout + done.stderr,
            workspace=place / "workspace",
            artifacts=place / "artifacts",
        )

    def _volumes(self, place: Path) -> Iterator[str]:
        yield f"--volume={self.origin}:/origin:ro"
        yield f"--volume={place / 'artifacts'}:/artifacts"
        for mount in self.mounts:
            yield f"--volume={mount}:{mount}"
        for volume in self.volumes:
            yield f"--volume={volume}"

    def _variables(self, sha: str, run_id: int, actor: str) -> dict[str, str]:
        """What GitHub knows of a run; act would ask the git repository that it stands in."""
        return {
            "GITHUB_API_URL": self.api_url,
            "GITHUB_REPOSITORY": self.repository,
            "GITHUB_REPOSITORY_OWNER": self.repository.partition("/")[0],
            "GITHUB_RUN_ID": str(run_id),
            "GITHUB_TRIGGERING_ACTOR": actor,
            "SHA_REF": sha,
            **self.environment,
        }

    def _actions(self, text: str, place: Path) -> Iterator[str]:
        """Each action that a workflow uses, and the directory that stands for its repository."""
        for name, commit in dict.fromkeys(_USES.findall(text)):
            owner, repository = name.split("/")[:2]
            full = f"{owner}/{repository}"
            yield f"{full}@{commit}={self._release(place) if full == OURS else STAND_INS / repository}"

    def _release(self, place: Path) -> Path:
        """Both action.yml as a release has them: with an image in the Dockerfile's place."""
        root = place / "release"
        reader = ruamel.yaml.YAML(typ="safe", pure=True)
        for path, image in (
            ("action.yml", self.images.full),
            ("review/action.yml", self.images.review),
        ):
            action = reader.load((ROOT / path).read_text("utf-8"))
            written = re.sub(
                r"^  image: \S*Dockerfile.*$",
                f"  image: docker://{image}",
                (ROOT / path).read_text("utf-8"),
                count=1,
                flags=re.M,
            )
            assert reader.load(written)["runs"]["image"] == f"docker://{image}", action["name"]
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(written, encoding="utf-8")
        return root


def _json_lines(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.startswith("{"):
            yield json.loads(line)
