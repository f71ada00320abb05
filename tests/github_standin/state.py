"""What the front knows on top of emulate: tokens, roles, pull request facts, workflows and
reactions.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from . import shapes

OWNER = "acme"
APP_BOT = "acme-review[bot]"
ROLES = ("read", "triage", "write", "maintain", "admin")

# Everybody the stand-in knows, and the role each has in a fresh repository; None is no
# collaborator.
PEOPLE: dict[str, str | None] = {
    OWNER: "admin",
    "author": "write",
    "maintainer": "maintain",
    "writer": "write",
    "triager": "triage",
    "reader": "read",
    "outsider": None,
    "stranger": None,
    shapes.ACTIONS_BOT: None,
    "dependabot[bot]": None,
    APP_BOT: None,
}

TokenKind = Literal["user", "actions", "app"]


@dataclass(frozen=True)
class Token:
    """Who a token speaks for.

    `permissions` are those of the workflow's `permissions:` key ("pull-requests": "write"); only
    `actions` and `app` tokens have them. `repo` is the one repository an `actions` token is for.
    """

    login: str
    kind: TokenKind = "user"
    permissions: Mapping[str, str] = field(default_factory=dict)
    repo: str | None = None

    @property
    def label(self) -> str:
        """How the request log names it."""
        return f"{self.kind}:{self.login}"

    def may(self, permission: str, *, write: bool) -> bool:
        """Whether the token was given this permission."""
        level = self.permissions.get(permission)
        return level == "write" or (level == "read" and not write)


@dataclass(frozen=True)
class Signature:
    """Which accounts a commit's addresses belong to, and whether its signature is verified."""

    author: str | None
    committer: str | None
    verified: bool = True


@dataclass
class PullState:
    """Facts of a pull request that emulate cannot hold. None keeps emulate's value.

    `computing_reads` is how many more reads find `mergeable` still being computed (null / unknown).
    `files` are entries of `pulls/N/files`; None computes them from the commits.
    """

    head_sha: str | None = None
    base_sha: str | None = None
    merge_commit_sha: str | None = None
    mergeable: bool | None = True
    mergeable_state: str = "clean"
    computing_reads: int = 0
    files: list[dict[str, Any]] | None = None


@dataclass(frozen=True)
class Dispatch:
    """A `workflow_dispatch` somebody asked for."""

    workflow: str
    ref: str
    inputs: Mapping[str, Any]
    login: str
    run_id: int


@dataclass(frozen=True)
class Workflow:
    """A workflow file. `inputs` maps each declared input to whether it is required; None accepts
    anything.
    """

    id: int
    path: str
    inputs: Mapping[str, bool] | None = None

    def answers_to(self, name: str) -> bool:
        """The API takes the number or the file name."""
        return name in {str(self.id), self.path, self.path.rsplit("/", 1)[-1]}


@dataclass
class Run:
    """A workflow run."""

    id: int
    workflow: Workflow
    event: str
    head_branch: str
    head_sha: str
    login: str
    status: str = "queued"
    conclusion: str | None = None


@dataclass(frozen=True)
class Artifact:
    """A stored artifact: a zip file of a run."""

    id: int
    run_id: int
    name: str
    content: bytes
    expired: bool = False

    @property
    def digest(self) -> str:
        """As the API writes it."""
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"


@dataclass
class RepoState:
    """One repository. `roles` are the collaborators, `signatures` those of commits, by sha."""

    full_name: str
    private: bool = False
    roles: dict[str, str] = field(default_factory=dict)
    pulls: dict[int, PullState] = field(default_factory=dict)
    signatures: dict[str, Signature] = field(default_factory=dict)
    workflows: list[Workflow] = field(default_factory=list)
    dispatches: list[Dispatch] = field(default_factory=list)
    runs: dict[int, Run] = field(default_factory=dict)
    artifacts: dict[int, Artifact] = field(default_factory=dict)
    # By id; `annotations` is what was sent, in its order.
    checks: dict[int, dict[str, Any]] = field(default_factory=dict)
    # Logins that emulate has as collaborators, so that it lets them write; `roles` decides who may.
    admitted: set[str] = field(default_factory=set)

    @property
    def owner(self) -> str:
        """The owner's login."""
        return self.full_name.split("/")[0]

    def rank(self, login: str) -> int:
        """Index into ROLES, -1 without a role."""
        role = self.roles.get(login)
        return ROLES.index(role) if role else -1

    def pull(self, number: int) -> PullState:
        """The facts of a pull request, made on first sight."""
        return self.pulls.setdefault(number, PullState())

    def association(self, login: str) -> str:
        """`author_association`: what GitHub calls the relation of a login to the repository."""
        if login == self.owner:
            return "OWNER"
        return "COLLABORATOR" if login in self.roles else "NONE"


@dataclass
class World:
    """Everything the front holds. `url` is its public address."""

    url: str = ""
    repos: dict[str, RepoState] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    reactions: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    minimized: dict[str, str] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(9_000_000_001))

    def issue_token(self, token: Token) -> str:
        """A new secret for `token`, in the form GitHub gives it."""
        prefix = "ghp_" if token.kind == "user" else "ghs_"
        seed = f"{token.label}-{next(self.numbers)}"
        secret = prefix + hashlib.sha256(seed.encode()).hexdigest()[:36]
        self.tokens[secret] = token
        return secret
