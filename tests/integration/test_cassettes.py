"""The shapes of the calls to GitHub, replayed from cassettes with the network blocked.

Every request is held against the recording, its body included, so a change in what the client
sends shows up here without any server. Recorded from the client against the stateful stand-in,
whose traffic GitHub's OpenAPI description checks at the same moment:

    python -m pytest tests/integration/test_cassettes.py --record-mode=rewrite
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from ruamel.yaml import YAML

from ci_bot.bot.github.client import ACTIONS_BOT, GitHubClient
from ci_bot.bot.github.port import Permission
from tests.github_standin.repo import Repo
from tests.github_standin.standin import GitHubStandin
from tests.integration.github_client_parts import Clock

Test = TypeVar("Test", bound=Callable[..., None])

CASSETTES = Path(__file__).parent.parent / "cassettes"
# Nobody listens there: an answer can only come from a cassette.
ADDRESS = "127.0.0.1:9"
AGENT = "sqlmesh-plan-review"
NUMBER = 3
_LOOPBACK = re.compile(r"127\.0\.0\.1:\d+")
# Whatever may give somebody access, and whatever names the machine that recorded.
_SECRET = re.compile(
    r"gh[a-z]_[A-Za-z0-9]|github_pat_|[Aa]uthorization|[Bb]earer |PRIVATE KEY|password", re.ASCII
)
_MACHINE = re.compile(r"/(?:tmp|home|root|work|usr|opt)/")


@dataclass(frozen=True)
class Scene:
    """GitHub as the tests find it: the stand-in while recording, a cassette otherwise."""

    url: str
    token: str
    repository: str
    repo: Repo | None = None

    def client(self) -> GitHubClient:
        return GitHubClient(
            repository=self.repository,
            token=self.token,
            api_url=self.url,
            time=Clock().time(),
            agent=AGENT,
        )


@pytest.fixture(scope="module")
def vcr_cassette_dir() -> str:
    return str(CASSETTES)


@pytest.fixture
def vcr_config() -> dict[str, Any]:
    return {
        "filter_headers": ["authorization"],
        "before_record_request": _client_only,
        "before_record_response": _anywhere,
        "match_on": ["method", "scheme", "host", "port", "path", "query", "body"],
    }


def _client_only(request: Any) -> Any:
    """The client's requests alone, at an address that is the same in every recording."""
    if request.headers.get("User-Agent") != AGENT:
        return None  # the stand-in's own helpers, while recording
    request.uri = _LOOPBACK.sub(ADDRESS, request.uri)
    return request


def _anywhere(response: dict[str, Any]) -> dict[str, Any]:
    """The answer without the recording's address; its length is no longer the body's."""
    body = response["body"]["string"]
    text = body if isinstance(body, str) else body.decode()
    response["body"]["string"] = _LOOPBACK.sub(ADDRESS, text).encode()
    response["headers"] = {
        name: [_LOOPBACK.sub(ADDRESS, value) for value in values]
        for name, values in response["headers"].items()
        if name.lower() not in ("content-length", "date", "server")
    }
    return response


@pytest.fixture
def scene(request: pytest.FixtureRequest, record_mode: str) -> Scene:
    """A repository with a pull request, a fork's one, people and comments."""
    name = request.node.name.partition("__")[0].removeprefix("test_")
    if record_mode == "none":
        return Scene(url=f"http://{ADDRESS}", token="ghs_" + "0" * 36, repository=f"acme/{name}")
    standin: GitHubStandin = request.getfixturevalue("github_standin")
    return _recording(standin, name)


def _recording(standin: GitHubStandin, name: str) -> Scene:
    repo = standin.make_repo(name)
    repo.commit("main", {"README.md": "# Warehouse\n"})
    sha = repo.commit("feature", {"models/a.sql": "SELECT 1\n"}, start="main")
    pull = repo.create_pull("feature", number=NUMBER, merge_sha=sha)
    pull.add_comment("Nice.", "author")
    fork = repo.fork()
    fork.commit("outside", {"models/b.sql": "SELECT 2\n"}, start="main")
    repo.create_pull("outside", author="outsider", draft=True, head_repo=fork)
    repo.add_workflow("apply.yml", {"pr-number": True, "plan-id": False})
    permissions = {"contents": "read", "pull-requests": "write", "actions": "write"}
    return Scene(
        url=standin.url,
        token=standin.actions_token(repo, permissions),
        repository=repo.full_name,
        repo=repo,
    )


def replayed(test: Test) -> Test:
    """From the test's own cassette, and from nowhere else."""
    marked: Test = pytest.mark.vcr(pytest.mark.block_network(test))
    return marked


@replayed
def test_comments__listed_created_read_replaced_and_removed(scene: Scene) -> None:
    client = scene.client()

    assert [comment.author for comment in client.list_comments(NUMBER)] == ["author"]
    made = client.create_comment(NUMBER, "Planning…")
    assert (made.author, made.number) == (ACTIONS_BOT, NUMBER)
    assert client.get_comment(made.id).body == "Planning…"
    changed = client.update_comment(made.id, "Planned.")
    assert (changed.id, changed.body) == (made.id, "Planned.")
    assert [comment.body for comment in client.list_comments(NUMBER)] == ["Nice.", "Planned."]
    client.delete_comment(made.id)
    assert [comment.body for comment in client.list_comments(NUMBER)] == ["Nice."]


@replayed
def test_pull__open_and_from_a_fork(scene: Scene) -> None:
    client = scene.client()

    pull = client.get_pull(NUMBER, settle=True)
    outside = client.get_pull(NUMBER + 1)

    assert (pull.open, pull.merged, pull.draft, pull.fork) == (True, False, False, False)
    assert (pull.head_ref, pull.base_ref, pull.author) == ("feature", "main", "author")
    assert pull.mergeable
    assert (outside.fork, outside.draft, outside.author) == (True, True, "outsider")
    assert outside.head_repository == "outsider/pull"


@replayed
def test_permission__of_each_role(scene: Scene) -> None:
    client = scene.client()
    people: dict[str, Permission] = {
        "acme": "admin",
        "maintainer": "maintain",
        "writer": "write",
        "triager": "triage",
        "reader": "read",
    }

    assert {login: client.get_permission(login) for login in people} == people


@replayed
def test_viewer__is_the_workflows_own_account(scene: Scene) -> None:
    client = scene.client()

    assert client.my_login() == ACTIONS_BOT
    assert client.my_login() == ACTIONS_BOT, "the second answer is remembered, not asked for"


@replayed
def test_command__is_seen_and_started(scene: Scene) -> None:
    client = scene.client()
    asked = next(client.list_comments(NUMBER))

    client.add_reaction(asked.id, "eyes")
    client.dispatch_workflow("apply.yml", "main", {"pr-number": str(NUMBER), "plan-id": ""})

    if scene.repo is not None:
        assert [made.workflow for made in scene.repo.dispatches] == ["apply.yml"]


# The recordings themselves


FOUND = sorted(CASSETTES.rglob("*.yaml"))


def test_cassettes__are_those_of_these_tests(request: pytest.FixtureRequest) -> None:
    replaying = {
        name
        for name, test in vars(request.module).items()
        if any(mark.name == "vcr" for mark in getattr(test, "pytestmark", []))
    }

    assert {path.stem for path in CASSETTES.rglob("*.yaml")} == replaying
    assert len(replaying) == 5


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_cassette__holds_no_secret_and_nothing_of_the_machine(path: Path) -> None:
    text = path.read_text("utf-8")

    assert _SECRET.search(text) is None
    assert _MACHINE.search(text) is None
    assert set(_LOOPBACK.findall(text)) <= {ADDRESS}


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_cassette__names_version_and_agent_in_every_request(path: Path) -> None:
    recorded = YAML(typ="safe").load(path.read_text("utf-8"))

    for exchange in recorded["interactions"]:
        headers = {name.lower(): value for name, value in exchange["request"]["headers"].items()}
        assert headers["x-github-api-version"] == ["2022-11-28"]
        assert headers["user-agent"] == [AGENT]
        assert exchange["response"]["status"]["code"] < 400
