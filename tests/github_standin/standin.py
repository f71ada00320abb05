"""The stateful GitHub stand-in: emulate, the front, and helpers to set a scene and to look at what
happened.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

from . import routes_actions, routes_checks, routes_issues, routes_people, routes_pulls, shapes
from .conformance import Conformance, Finding
from .deviations import DEVIATIONS, Deviation
from .emulator import Emulator
from .front import Front
from .parts import Parts
from .repo import Repo
from .script import Script
from .state import APP_BOT, OWNER, PEOPLE, RepoState, Token
from .wire import Exchange

# What the example workflows ask for; a test of their own `permissions:` passes those instead.
USUAL_PERMISSIONS = {"contents": "read", "pull-requests": "write"}


class GitHubStandin:
    """One running stand-in. Slow to start (about half a second), so a session shares it;
    repositories are cheap.

    A context manager. `url` is the base URL for clients, what `GITHUB_API_URL` says on a runner.
    """

    def __init__(self, parts: Parts, workdir: Path) -> None:
        self._parts = parts
        routes = [
            *routes_people.ROUTES,
            *routes_issues.ROUTES,
            *routes_pulls.ROUTES,
            *routes_actions.ROUTES,
            *routes_checks.ROUTES,
        ]
        self._front = Front(routes)
        self.emulator = Emulator(parts, self.url, tuple(PEOPLE), workdir)
        self._front.attach(self.emulator)
        self._names = itertools.count(1)
        self._conformance: Conformance | None = None

    def __enter__(self) -> GitHubStandin:
        try:
            self.emulator.start()
        except BaseException:
            self._front.server.stop()
            raise
        self._front.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._front.server.stop()
        self.emulator.stop()

    # The scene

    @property
    def url(self) -> str:
        """Base URL without a trailing slash."""
        return self._front.world.url

    @property
    def script(self) -> Script:
        """Faults to inject; asked before anything else."""
        return self._front.script

    def make_repo(self, name: str | None = None, *, private: bool = False) -> Repo:
        """A fresh, empty repository of `acme`; without a name it gets an unused one."""
        name = name or f"warehouse-{next(self._names)}"
        payload = {"name": name, "private": private, "auto_init": False}
        self.emulator.do("POST", "/user/repos", OWNER, payload)
        return self._adopt(f"{OWNER}/{name}", private=private)

    def _adopt(self, full_name: str, *, private: bool) -> Repo:
        roles = {login: role for login, role in PEOPLE.items() if role is not None}
        owner = full_name.split("/", maxsplit=1)[0]
        state = RepoState(full_name, private, roles if owner == OWNER else {owner: "admin"})
        self._front.world.repos[full_name] = state
        return Repo(self._front, state, self._adopt)

    # Tokens

    def user_token(self, login: str) -> str:
        """A personal token of one of `state.PEOPLE`."""
        return self._issue(Token(self._known(login)))

    def actions_token(self, repo: Repo, permissions: Mapping[str, str] = USUAL_PERMISSIONS) -> str:
        """A GITHUB_TOKEN of a workflow in `repo` with these `permissions:` (names as in the
        workflow file).

        It cannot read `/user`, and what it writes is by `github-actions[bot]`. A fork's run:
        `{"contents": "read"}`.
        """
        return self._issue(Token(shapes.ACTIONS_BOT, "actions", dict(permissions), repo.full_name))

    def app_token(self, permissions: Mapping[str, str] = USUAL_PERMISSIONS) -> str:
        """An installation token of a GitHub App of the team's own, `acme-review[bot]`."""
        return self._issue(Token(APP_BOT, "app", dict(permissions)))

    def revoke(self, token: str) -> None:
        """From now on the token gets 401."""
        del self._front.world.tokens[token]

    def _issue(self, token: Token) -> str:
        return self._front.world.issue_token(token)

    @staticmethod
    def _known(login: str) -> str:
        if login not in PEOPLE:
            raise ValueError(f"the stand-in knows no {login!r}; it knows {', '.join(PEOPLE)}")
        return login

    # What happened

    @property
    def requests(self) -> list[Exchange]:
        """Every request of the clients since the last `reset`, in order, with its answer. Helpers
        leave no trace.
        """
        return self._front.server.log

    @property
    def writes(self) -> list[Exchange]:
        """The requests that could change something."""
        return [exchange for exchange in self.requests if exchange.is_write]

    def reset(self) -> None:
        """Forget the log and the faults; repositories and tokens stay."""
        self._front.server.clear_log()
        self.script.clear()

    # Conformance

    @property
    def conformance(self) -> Conformance:
        """GitHub's description, loaded on first use."""
        if self._conformance is None:
            self._conformance = Conformance.load(self._parts.openapi, self.url, DEVIATIONS)
        return self._conformance

    def findings(self) -> list[Finding]:
        """Disagreements of the logged traffic with GitHub's description that are not known
        deviations.
        """
        return self.conformance.check(self.requests)

    def assert_conformant(self) -> None:
        """Fail with one line per disagreement."""
        found = sorted({str(finding) for finding in self.findings()})
        if found:
            raise AssertionError(
                "the traffic is not what GitHub describes:\n  " + "\n  ".join(found)
            )

    def unused_deviations(self) -> list[Deviation]:
        """Lines of the deviation list that the traffic checked so far has not shown."""
        return self.conformance.unused()
