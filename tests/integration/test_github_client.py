"""The client with real PyGithub against a loopback server: what each verb asks and believes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from ci_bot.bot.github.port import NotFound, PullRequest, PullState
from ci_bot.errors import BadInput, BotError, GitHubUnavailable, RequestRefused
from tests.github_standin.script import (
    Reply,
    broken_json,
    connection_reset,
    forbidden,
    server_error,
)
from tests.github_standin.scripted import ScriptedServer
from tests.integration.github_client_parts import (
    APP,
    HEAD,
    LIST,
    ME,
    PERSON,
    PULL,
    REPO,
    ROOT,
    Clock,
    asked,
    client,
    named,
    pull,
    scripted_github,
)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_github() as started:
        yield started


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_get_pull__is_one_request_with_the_headers_that_github_asks_for(
    server: ScriptedServer, clock: Clock
) -> None:
    server.github.serve("GET", PULL, pull())
    assert client(server, clock).get_pull(7) == PullRequest(
        number=7,
        open=True,
        merged=False,
        draft=False,
        mergeable=True,
        head_sha=HEAD,
        head_ref="more-delays",
        head_repository=REPO,
        base_sha="b" * 40,
        base_ref="main",
        merge_sha="c" * 40,
        author="ada",
        fork=False,
        url="https://github.example/octo/flights/pull/7",
    )
    (only,) = server.requests
    assert only.request.token == APP
    assert only.request.headers["x-github-api-version"] == "2022-11-28"
    assert only.request.headers["user-agent"] == "sqlmesh-plan-review"


def test_required_checks__are_those_of_all_rulesets(server: ScriptedServer, clock: Clock) -> None:
    def rule(*names: str) -> dict[str, Any]:
        checks = [{"context": name, "integration_id": None} for name in names]
        parameters = {
            "required_status_checks": checks,
            "strict_required_status_checks_policy": True,
        }
        return {"type": "required_status_checks", "parameters": parameters}

    path = f"/repos/{REPO}/rules/branches/release%2F1"
    rules = [{"type": "deletion"}, rule("Review the plan", "lint"), rule("lint")]
    server.script.on("GET", path, Reply(json=rules))
    found = client(server, clock).list_required_checks("release/1")
    assert found == ["Review the plan", "lint"]


def test_get_pull__settles_while_github_works_out_whether_it_merges(
    server: ScriptedServer, clock: Clock
) -> None:
    server.script.on("GET", PULL, *[Reply(json=pull(mergeable=None))] * 2, Reply(json=pull()))
    assert client(server, clock).get_pull(7, settle=True).mergeable is True
    assert clock.slept == [1.0, 2.0]
    server.script.on("GET", PULL, *[Reply(json=pull(mergeable=None))] * 4)
    assert client(server, clock).get_pull(7, settle=True).mergeable is None


def test_get_pull__of_a_deleted_fork(server: ScriptedServer, clock: Clock) -> None:
    head = {"sha": HEAD, "ref": "x", "repo": None}
    server.github.serve("GET", PULL, pull(head=head, user=None, state="closed", merged=True))
    found = client(server, clock).get_pull(7)
    assert (found.fork, found.author, found.open, found.merged) == (True, "ghost", False, True)


def test_get_pull__that_does_not_exist(server: ScriptedServer, clock: Clock) -> None:
    with pytest.raises(NotFound, match="read pull request 8") as caught:
        client(server, clock).get_pull(8)
    assert caught.value.exit_code == 2
    assert len(server.requests) == 1


@pytest.mark.parametrize("odd", [[], None, {"number": "7"}, pull(head=None), pull(number=True)])
def test_get_pull__answer_of_another_shape_is_a_clear_failure(
    server: ScriptedServer, clock: Clock, odd: Any
) -> None:
    server.github.serve("GET", PULL, odd)
    with pytest.raises(GitHubUnavailable, match="GitHub's answer lacks"):
        client(server, clock).get_pull(7)


def test_get_pull__answer_that_was_cut_off(server: ScriptedServer, clock: Clock) -> None:
    server.script.on("GET", PULL, broken_json())
    with pytest.raises(GitHubUnavailable, match="is not JSON"):
        client(server, clock).get_pull(7)


@pytest.mark.parametrize(("count", "pages"), [(0, 1), (1, 1), (100, 1), (101, 2), (250, 3)])
def test_list_comments__reads_every_page_and_none_too_many(
    server: ScriptedServer, clock: Clock, count: int, pages: int
) -> None:
    ids = [server.github.add_comment(REPO, 7, f"number {n}", "ada") for n in range(count)]
    found = list(client(server, clock).list_comments(7))
    assert [each.id for each in found] == ids
    assert all(each.number == 7 for each in found)
    assert len(server.requests) == pages
    assert {each.request.query["per_page"] for each in server.requests} == {"100"}


def test_list_comments__knows_minimised_edited_and_orphaned_ones(
    server: ScriptedServer, clock: Clock
) -> None:
    for _ in range(3):
        server.github.add_comment(REPO, 7, "x")
    plain, hidden, edited = server.github.comments(REPO, 7)
    hidden["minimized"] = {"reason": "outdated"}
    edited |= {"updated_at": "2030-01-01T00:00:00Z", "user": None, "body": None}
    found = list(client(server, clock).list_comments(7))
    assert [each.minimized for each in found] == [False, True, False]
    assert [each.was_edited for each in found] == [False, False, True]
    assert (found[2].author, found[2].body) == ("ghost", "")
    assert plain["id"] == found[0].id


def test_list_comments__does_not_follow_the_urls_of_the_answer(
    server: ScriptedServer, clock: Clock
) -> None:
    """The token goes to the configured host only, whatever a Link header says."""
    link = {"Link": '<https://elsewhere.example/comments?page=2>; rel="next"'}
    server.github.add_comment(REPO, 7, "x")
    page = Reply(json=server.github.comments(REPO, 7), headers=link)
    server.script.on("GET", LIST, page, when=lambda request: request.query["page"] == "1")
    assert len(list(client(server, clock).list_comments(7))) == 1
    assert asked(server) == [f"GET {LIST}"] * 2


def test_list_comments__that_repeats_itself_ends(server: ScriptedServer, clock: Clock) -> None:
    """PyGithub follows a renamed repository's redirect without the query: page 1 for ever."""
    server.github.add_comment(REPO, 7, "x")
    page = Reply(json=server.github.comments(REPO, 7), headers={"Link": '<x>; rel="next"'})
    server.script.on("GET", LIST, page, forever=True)
    with pytest.raises(GitHubUnavailable, match="again and again"):
        list(client(server, clock).list_comments(7))
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"permission": "admin", "role_name": "admin"}, "admin"),
        ({"permission": "write", "role_name": "maintain"}, "maintain"),
        ({"permission": "write", "role_name": "write"}, "write"),
        ({"permission": "read", "role_name": "triage"}, "triage"),
        ({"permission": "none", "role_name": "none"}, "none"),
        ({"permission": "push", "role_name": "write"}, "write"),
        ({"permission": "write", "role_name": "data-steward"}, "write"),
        ({"permission": "read", "role_name": "data-reader"}, "read"),
        ({"permission": "read"}, "read"),
        ({"permission": "owner of all", "role_name": 3}, "none"),
    ],
)
def test_permission__is_the_role_or_what_a_custom_role_is_built_on(
    server: ScriptedServer, clock: Clock, answer: dict[str, Any], expected: str
) -> None:
    server.github.serve("GET", f"{ROOT}/collaborators/ada/permission", answer)
    assert client(server, clock).get_permission("ada") == expected


def test_permission__of_somebody_unknown_is_none_and_the_name_cannot_leave_its_place(
    server: ScriptedServer, clock: Clock
) -> None:
    assert client(server, clock).get_permission("../../../user?x=/#") == "none"
    assert asked(server) == [
        f"GET {ROOT}/collaborators/..%2F..%2F..%2Fuser%3Fx%3D%2F%23/permission"
    ]


@pytest.mark.parametrize(("state", "expected"), [("active", True), ("pending", False)])
def test_team__has_who_has_joined_it(
    server: ScriptedServer, clock: Clock, state: str, expected: bool
) -> None:
    path = "/orgs/acme/teams/data/memberships/ada"
    server.github.serve("GET", path, {"state": state, "role": "member"})
    assert client(server, clock).in_team("acme/data", "ada") is expected


def test_team__that_does_not_have_a_person_is_not_theirs_and_names_cannot_leave_their_place(
    server: ScriptedServer, clock: Clock
) -> None:
    github = client(server, clock)
    assert not github.in_team("acme/../y", "../?z=#")
    assert asked(server) == ["GET /orgs/acme/teams/..%2Fy/memberships/..%2F%3Fz%3D%23"]
    for team in ("../data", "acme/..", "acme/.", "acme", "acme/", "/data"):
        assert not github.in_team(team, "ada")
    assert not github.in_team("acme/data", "..")
    assert len(asked(server)) == 1


def test_pulls_for_sha__takes_open_ones_with_exactly_this_head(
    server: ScriptedServer, clock: Clock
) -> None:
    moved = pull(number=8, head={"sha": "d" * 40, "ref": "x", "repo": {"full_name": "s/flights"}})
    server.github.serve("GET", f"{ROOT}/pulls", [moved, pull()])
    found = client(server, clock).pulls_for_sha(HEAD, head="stranger:more-delays")
    assert [each.number for each in found] == [7]
    (only,) = server.requests
    assert only.request.query["head"] == "stranger:more-delays"


def test_pulls_for_sha__asks_by_commit_where_the_branch_gives_none(
    server: ScriptedServer, clock: Clock
) -> None:
    server.github.serve("GET", f"{ROOT}/pulls", [])
    closed = pull(number=6, state="closed", merged_at="2026-08-22T10:00:00Z")
    server.github.serve("GET", f"{ROOT}/commits/{HEAD}/pulls", [pull(), closed])
    github = client(server, clock)
    assert [each.number for each in github.pulls_for_sha(HEAD, head="gone:x")] == [7]
    assert [each.number for each in github.pulls_for_sha(HEAD)] == [7]
    assert len(server.requests) == 3


def test_pull_states__one_list_for_many(server: ScriptedServer, clock: Clock) -> None:
    closed = pull(number=6, state="closed", merged_at="2026-08-22T10:00:00Z")
    server.script.on(
        "GET",
        f"{ROOT}/pulls",
        Reply(json=[pull()]),
        when=lambda request: request.query["state"] == "open",
    )
    server.script.on("GET", f"{ROOT}/pulls", Reply(json=[closed]))
    assert client(server, clock).pull_states([6, 7]) == {
        6: PullState(state="closed", merged=True),
        7: PullState(state="open", merged=False),
    }
    assert len(server.requests) == 2


def test_changed_files__with_old_names_and_none_where_there_are_too_many(
    server: ScriptedServer, clock: Clock
) -> None:
    path = f"{PULL}/files"
    renamed = {"filename": "models/new.sql", "previous_filename": "models/old.sql"}
    server.github.serve("GET", path, [renamed, {"filename": "config.yaml"}])
    assert client(server, clock).changed_files(7) == [
        "models/old.sql",
        "models/new.sql",
        "config.yaml",
    ]
    full = [[{"filename": f"{page}/{n}"} for n in range(100)] for page in range(30)]
    link = {"Link": '<x>; rel="next"'}
    server.script.on(
        "GET", path, *[Reply(json=each, headers=link) for each in full[:-1]], Reply(json=full[-1])
    )
    assert client(server, clock).changed_files(7) is None


def test_my_login__of_a_workflow_token_is_one_graphql_request(
    server: ScriptedServer, clock: Clock
) -> None:
    github = client(server, clock)
    assert [github.my_login(), github.my_login()] == [ME, ME]
    assert asked(server) == ["POST /graphql"]


def test_my_login__of_a_person_is_one_rest_request(server: ScriptedServer, clock: Clock) -> None:
    server.github.serve("GET", "/user", {"login": "octo-bot"})
    assert client(server, clock, token=PERSON).my_login() == "octo-bot"
    assert asked(server) == ["GET /user"]


def test_my_login__is_learned_from_a_comment_that_was_written(
    server: ScriptedServer, clock: Clock
) -> None:
    github = client(server, clock)
    github.create_comment(7, "hello")
    assert github.my_login() == ME
    assert asked(server) == [f"POST {LIST}"]


@pytest.mark.parametrize(
    "answer",
    [
        Reply(status=404, json={"message": "Not Found"}),
        forbidden(),
        Reply(json={"data": None, "errors": [{"type": "FORBIDDEN"}]}),
    ],
)
def test_my_login__falls_back_to_the_actions_bot(
    server: ScriptedServer, clock: Clock, answer: Reply
) -> None:
    server.script.on("POST", "/graphql", answer)
    assert client(server, clock).my_login() == ME
    assert len(server.requests) == 1


def test_my_login__does_not_guess_while_github_is_down(
    server: ScriptedServer, clock: Clock
) -> None:
    """A wrong guess would not find our comment, and write a second one."""
    server.script.on("POST", "/graphql", server_error(), forever=True)
    with pytest.raises(GitHubUnavailable):
        client(server, clock).my_login()


def test_my_login__with_a_bad_token_is_bad_input(server: ScriptedServer, clock: Clock) -> None:
    server.script.on("POST", "/graphql", Reply(status=401, json={"message": "Bad credentials"}))
    with pytest.raises(BadInput, match="does not accept the token"):
        client(server, clock).my_login()


def artifacts(server: ScriptedServer, *entries: dict[str, Any]) -> None:
    server.github.serve("GET", f"{ROOT}/actions/runs/5/artifacts", {"artifacts": list(entries)})


def test_download_artifact__comes_from_storage_without_the_token(
    server: ScriptedServer, clock: Clock
) -> None:
    artifacts(
        server, {"id": 1, "name": "report"}, {"id": 2, "name": "report"}, {"id": 3, "name": "x"}
    )
    with ScriptedServer(ME) as storage:
        storage.script.on("GET", "/blob", Reply(body=b"PK zip"))
        location = {"Location": f"{storage.url}/blob?sig=abc"}
        server.script.on(
            "GET", f"{ROOT}/actions/artifacts/2/zip", Reply(status=302, headers=location)
        )
        got = client(server, clock).download_artifact(5, "report", max_bytes=6)
        (only,) = storage.requests
    assert got == b"PK zip"
    assert only.request.query == {"sig": "abc"}
    assert "authorization" not in only.request.headers
    assert APP not in repr(only.request)


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Reply(body=b"seven b"), RequestRefused, "larger than 6 bytes"),
        (Reply(status=403, body=b"expired"), GitHubUnavailable, "status 403"),
        (Reply(status=302, headers={"Location": "/other"}), GitHubUnavailable, "status 302"),
        (connection_reset(), GitHubUnavailable, r"the storage at 127\.0\.0\.1 did not answer"),
    ],
    ids=named,
)
def test_download_artifact__faults_of_the_storage(
    server: ScriptedServer, clock: Clock, reply: Reply, kind: type[BotError], words: str
) -> None:
    artifacts(server, {"id": 2, "name": "report"})
    with ScriptedServer(ME) as storage:
        storage.script.on("GET", "/blob", reply)
        location = {"Location": f"{storage.url}/blob"}
        server.script.on(
            "GET", f"{ROOT}/actions/artifacts/2/zip", Reply(status=302, headers=location)
        )
        with pytest.raises(kind, match=words):
            client(server, clock).download_artifact(5, "report", max_bytes=6)
        assert len(storage.requests) == 1


@pytest.mark.parametrize(
    "entries", [[], [{"id": 1, "name": "other"}], [{"id": 1, "name": "report", "expired": True}]]
)
def test_download_artifact__that_is_gone(
    server: ScriptedServer, clock: Clock, entries: list[dict[str, Any]]
) -> None:
    artifacts(server, *entries)
    with pytest.raises(NotFound, match="no artifact") as caught:
        client(server, clock).download_artifact(5, "report", max_bytes=6)
    assert caught.value.reason_code == "artifact_gone"


@pytest.mark.parametrize("where", ["http://storage.example/blob", "file:///etc/passwd", ""])
def test_download_artifact__from_a_place_that_is_not_asked(
    server: ScriptedServer, clock: Clock, where: str
) -> None:
    artifacts(server, {"id": 2, "name": "report"})
    reply = Reply(status=302, headers={"Location": where})
    server.script.on("GET", f"{ROOT}/actions/artifacts/2/zip", reply)
    with pytest.raises(GitHubUnavailable, match="not asked"):
        client(server, clock).download_artifact(5, "report", max_bytes=6)


def test_client__imports_pygithub_with_its_first_request_only() -> None:
    code = (
        "import sys, time\n"
        "from ci_bot.bot.github.client import GitHubClient\n"
        "from ci_bot.bot.github.transport import GitHubClientTime\n"
        "GitHubClient(repository='octo/flights', token='ghs_x', api_url='https://api.github.com',"
        " time=GitHubClientTime(time.time, time.monotonic, time.sleep, lambda: 0.0))\n"
        "print(sorted({'github', 'requests', 'urllib3', 'pydantic'} & set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == "[]"
