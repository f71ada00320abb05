"""The GitHub stand-in does what GitHub does, as PyGithub sees it, and its traffic is what GitHub
describes.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from github import Github, GithubException
from github.GithubException import BadCredentialsException, UnknownObjectException

from ci_bot.bot.github.client import GitHubClient
from ci_bot.bot.report.markdown.check_run import CheckAnnotation, CheckRun
from ci_bot.errors import GitHubUnavailable, RequestRefused
from tests.github_standin import events, script
from tests.github_standin.client import connect_to
from tests.github_standin.local_git import LocalGit
from tests.github_standin.repo import Repo
from tests.github_standin.shapes import ACTIONS_BOT
from tests.github_standin.standin import GitHubStandin
from tests.integration.github_client_parts import Clock

pytestmark = pytest.mark.standin

Connect = Callable[..., Github]


@pytest.fixture
def connect(github_standin: GitHubStandin) -> Iterator[Connect]:
    """A PyGithub client for a token of the stand-in."""
    yield lambda token, **more: connect_to(github_standin.url, token, **more)


def statuses(standin: GitHubStandin) -> list[int]:
    """The statuses of the answers so far."""
    return [exchange.answer.status for exchange in standin.requests if exchange.answer]


# A pull request's life, as the bot goes through it


def test_comments__created_edited_and_found_on_the_third_page(
    github_standin: GitHubStandin, github_repo: Repo, connect: Connect
) -> None:
    github_repo.commit("feature", {"models/a.sql": "SELECT 1\n"}, start="main")
    pull = github_repo.create_pull("feature")
    pull.add_comments(205, login="outsider")
    token = github_standin.actions_token(github_repo)
    seen = connect(token).get_repo(github_repo.full_name).get_pull(pull.number)

    mine = seen.create_issue_comment("first")
    mine.edit("second")
    found = list(seen.get_issue_comments())
    by_hundred = list(
        connect(token, per_page=100)
        .get_repo(github_repo.full_name)
        .get_issue(pull.number)
        .get_comments()
    )

    assert [comment.body for comment in found if comment.user.login == ACTIONS_BOT] == ["second"]
    assert len(found) == len(by_hundred) == 206
    assert mine.user.type == "Bot"
    assert mine.html_url.endswith(f"/pull/{pull.number}#issuecomment-{mine.id}")
    assert [c["body"] for c in pull.comments_by(ACTIONS_BOT)] == ["second"]
    assert len(pull.comments()) == 206
    assert [str(e).split(" ")[0] for e in github_standin.writes] == ["POST", "PATCH"]
    lists = [
        e
        for e in github_standin.requests
        if e.request.path.endswith("/comments") and not e.is_write
    ]
    assert len(lists) == 7 + 3
    assert {e.label for e in github_standin.requests} == {f"actions:{ACTIONS_BOT}"}


def test_comment__longer_than_github_takes_is_422(
    github_standin: GitHubStandin, github_repo: Repo, connect: Connect
) -> None:
    github_repo.commit("feature", {"a": "1"}, start="main")
    pull = github_repo.create_pull("feature")
    seen = (
        connect(github_standin.user_token("author"))
        .get_repo(github_repo.full_name)
        .get_pull(pull.number)
    )
    longest = seen.create_issue_comment("\N{SNOWMAN}" * 65_536)
    with pytest.raises(GithubException) as create:
        seen.create_issue_comment("x" * 65_537)
    with pytest.raises(GithubException) as edit:
        longest.edit("x" * 65_537)
    assert (create.value.status, edit.value.status) == (422, 422)
    assert "65536 characters" in str(create.value.data)


def test_reactions__added_once_listed_counted_and_removed(
    github_standin: GitHubStandin, github_repo: Repo, connect: Connect
) -> None:
    github_repo.commit("feature", {"a": "1"}, start="main")
    pull = github_repo.create_pull("feature")
    command = pull.add_comment("/sqlmesh apply 0123456789ab", login="maintainer")
    repo = connect(github_standin.actions_token(github_repo)).get_repo(github_repo.full_name)
    comment = repo.get_issue(pull.number).get_comment(command["id"])

    first, again = comment.create_reaction("eyes"), comment.create_reaction("eyes")
    comment.create_reaction("rocket")
    assert first.id == again.id
    assert [r.content for r in comment.get_reactions()] == ["eyes", "rocket"]
    assert pull.comments()[0]["reactions"]["total_count"] == 2
    assert comment.delete_reaction(first.id)
    assert [(r.content, r.user.login) for r in comment.get_reactions()] == [("rocket", ACTIONS_BOT)]


def test_pull__shas_files_and_mergeability_are_those_of_a_real_git_repository(
    github_standin: GitHubStandin, connect: Connect, local_git: LocalGit
) -> None:
    git = local_git
    first = {"models/orders.sql": b"SELECT 1 AS id\n", "data.bin": bytes(range(256))}
    git.commit(first, "Base\n\nWith a body, ü.", "--date", "2024-01-31T23:30:00+05:30")
    git("checkout", "-q", "-b", "feature")
    git.commit(
        {"models/orders.sql": b"SELECT 2 AS id\n", "models/new.sql": b"SELECT 1\nFROM x\n"},
        "Change",
    )
    git("checkout", "-q", "main")
    git.commit({"other.txt": b"moved on\n"}, "Base moves")
    git("merge", "-q", "--no-ff", "feature", "-m", "Merge")
    merge = git("rev-parse", "HEAD")

    repo = github_standin.make_repo(private=True)
    pushed = repo.push_git(
        git.root, {"main": "main^1", "feature": "feature", "refs/pull/3/merge": "main"}
    )
    pull = repo.create_pull("feature", number=3, merge_sha=merge)
    pull.compute(reads=1)
    client = connect(github_standin.actions_token(repo)).get_repo(repo.full_name)
    computing, ready = client.get_pull(3), client.get_pull(3)

    assert computing.mergeable is None
    assert computing.mergeable_state == "unknown"
    assert (ready.mergeable, ready.mergeable_state) == (True, "clean")
    assert pushed["main"] == git("rev-parse", "main^1") == ready.base.sha
    assert pushed["feature"] == git("rev-parse", "feature") == ready.head.sha
    assert ready.merge_commit_sha == merge
    assert {(f.filename, f.status, f.additions, f.deletions) for f in ready.get_files()} == {
        ("models/new.sql", "added", 2, 0),
        ("models/orders.sql", "modified", 1, 1),
    }
    assert client.get_commit(merge).parents[1].sha == ready.head.sha
    pull.conflict()
    assert client.get_pull(3).mergeable is False


def test_pull__is_an_issue_too_and_goes_through_its_states(
    github_standin: GitHubStandin, github_repo: Repo, connect: Connect
) -> None:
    github_repo.commit("feature", {"a": "1"}, start="main")
    pull = github_repo.create_pull("feature", number=4, draft=True)
    client = connect(github_standin.user_token("maintainer")).get_repo(github_repo.full_name)
    seen = client.get_pull(4)
    assert (seen.draft, seen.mergeable_state) == (True, "draft")
    assert seen.as_issue().pull_request is not None
    assert client.get_issue(3).pull_request is None

    pull.set_draft(False)
    with pytest.raises(GithubException) as stale:
        client.get_pull(4).merge(sha=github_repo.tip("main") or "")
    assert stale.value.status == 409
    pull.close()
    assert client.get_pull(4).state == "closed"
    assert events.PullFacts.from_api(pull.json).state == "closed"
    pull.reopen()
    result = client.get_pull(4).merge()
    closed = client.get_pull(4)
    assert (closed.merged, closed.state, closed.merge_commit_sha) == (True, "closed", result.sha)
    assert [p.number for p in client.get_pulls(state="closed")] == [4]
    assert pull.event("closed")["pull_request"]["merged"] is True

    github_repo.commit("second", {"b": "1"}, start="main")
    other = github_repo.create_pull("second")
    pushed = github_repo.commit("second", {"b": "2"})
    other.push(pushed, merge_sha="f" * 40)
    other.close()
    event = other.event("synchronize")
    assert (event["after"], event["pull_request"]["merge_commit_sha"]) == (pushed, "f" * 40)
    assert client.get_pull(other.number).merged is False


def test_fork__is_seen_as_one_and_its_repository_can_vanish(
    github_standin: GitHubStandin, github_repo: Repo, connect: Connect
) -> None:
    fork = github_repo.fork("outsider")
    fork.commit("patch-1", {"models/a.sql": "SELECT 1\n"}, start="main")
    pull = github_repo.create_pull("patch-1", author="outsider", head_repo=fork)
    read_only = connect(github_standin.actions_token(github_repo, {"contents": "read"}))
    seen = read_only.get_repo(github_repo.full_name).get_pull(pull.number)
    assert (seen.head.repo.fork, seen.head.repo.full_name) == (True, fork.full_name)
    assert [file.filename for file in seen.get_files()] == ["models/a.sql"]
    assert seen.raw_data["author_association"] == "NONE"
    with pytest.raises(GithubException) as refused:
        seen.create_issue_comment("no")
    assert refused.value.status == 403
    fork.delete()
    assert pull.event("closed")["pull_request"]["head"]["repo"] is None


# Who one is, and what one may


def test_identity__of_each_kind_of_token(
    github_standin: GitHubStandin, github_repo: Repo, connect: Connect
) -> None:
    actions = connect(github_standin.actions_token(github_repo))
    app, person = connect(github_standin.app_token()), connect(github_standin.user_token("writer"))
    query = "query { viewer { login } }"
    for client, login in ((actions, ACTIONS_BOT), (app, "acme-review[bot]"), (person, "writer")):
        _, data = client.requester.graphql_query(query, {})
        assert data["data"]["viewer"]["login"] == login
    assert person.get_user().login == "writer"
    for client in (actions, app):
        with pytest.raises(GithubException) as refused:
            assert client.get_user().login
        assert refused.value.status == 403
        assert "Resource not accessible by integration" in str(refused.value.data)
    revoked = github_standin.user_token("writer")
    github_standin.revoke(revoked)
    for token in (revoked, "ghp_unknown"):
        with pytest.raises(BadCredentialsException):
            connect(token).get_repo(github_repo.full_name)
    assert requests.get(f"{github_standin.url}/repos/{github_repo.full_name}", timeout=5).ok


def test_permission__has_githubs_names(
    github_standin: GitHubStandin, github_repo: Repo, connect: Connect
) -> None:
    private = github_standin.make_repo(private=True)
    client = connect(github_standin.user_token("acme"))
    repo = client.get_repo(github_repo.full_name)
    known = ("acme", "maintainer", "writer", "triager", "reader", "outsider")
    assert [repo.get_collaborator_permission(login) for login in known] == (
        ["admin", "write", "write", "read", "read", "read"]
    )
    roles = [repo.get_collaborator_role_name(login) for login in ("maintainer", "triager")]
    assert roles == ["maintain", "triage"]
    assert client.get_repo(private.full_name).get_collaborator_permission("outsider") == "none"
    github_repo.grant("outsider", "write")
    github_repo.grant("writer", None)
    assert repo.get_collaborator_permission("outsider") == "write"
    assert repo.get_collaborator_permission("writer") == "read"
    for nobody in ("who-is-that", "dependabot[bot]"):
        with pytest.raises(GithubException) as unknown:
            repo.get_collaborator_permission(nobody)
        assert unknown.value.status == 404


def test_access__follows_the_permissions_of_the_token(
    github_standin: GitHubStandin, connect: Connect
) -> None:
    repo = github_standin.make_repo(private=True)
    repo.commit("main", {"a": "1"})
    repo.commit("feature", {"a": "2"}, start="main")
    pull = repo.create_pull("feature")
    note = pull.add_comment("from a person")

    def client(permissions: dict[str, str]) -> Any:
        return connect(github_standin.actions_token(repo, permissions)).get_repo(repo.full_name)

    with pytest.raises(GithubException) as blind:
        client({"contents": "read"}).get_pull(pull.number)
    assert blind.value.status == 403
    reader = client({"pull-requests": "read"})
    with pytest.raises(GithubException) as mute:
        reader.get_pull(pull.number).create_issue_comment("no")
    assert mute.value.status == 403
    writer = client({"issues": "write", "pull-requests": "read"})
    writer.get_issue(pull.number).get_comment(note["id"]).edit("edited by the app")
    with pytest.raises(GithubException) as closed:
        writer.get_pull(pull.number).merge()
    assert closed.value.status == 403
    with pytest.raises(UnknownObjectException):
        connect(github_standin.user_token("outsider")).get_repo(repo.full_name)
    with pytest.raises(GithubException) as foreign:
        other = connect(github_standin.user_token("reader")).get_repo(repo.full_name)
        other.get_issue(pull.number).get_comment(note["id"]).edit("not mine")
    assert foreign.value.status == 403


def test_minimize__hides_a_comment(
    github_standin: GitHubStandin, github_repo: Repo, connect: Connect
) -> None:
    github_repo.commit("feature", {"a": "1"}, start="main")
    pull = github_repo.create_pull("feature")
    client = connect(github_standin.actions_token(github_repo)).get_repo(github_repo.full_name)
    comment = client.get_pull(pull.number).create_issue_comment("old")
    assert comment.minimize()
    assert pull.comments()[0]["minimized"] == {"reason": "outdated"}
    assert len(github_standin.writes) == 2


# GitHub Actions


def test_check__takes_fifty_annotations_a_request_and_no_persons_token(
    github_standin: GitHubStandin, github_repo: Repo
) -> None:
    def write(token: str, annotations: int) -> int:
        found = CheckAnnotation(path="a.sql", line=1, level="notice", title="t", message="m")
        check = CheckRun(
            name="plan",
            head=github_repo.tip("main") or "",
            conclusion="neutral",
            title="Review",
            summary="**One** model changes.",
            annotations=(found,) * annotations,
            details_url="https://github.com/acme/warehouse/actions/runs/8",
        )
        before = len(github_standin.writes)
        GitHubClient(
            repository=github_repo.full_name,
            token=token,
            api_url=github_standin.url,
            time=Clock().time(),
        ).write_check(check)
        return len(github_standin.writes) - before

    mine = github_standin.actions_token(github_repo, {"checks": "write"})
    assert [write(mine, number) for number in (0, 50, 51, 130)] == [1, 1, 2, 3]
    checks = github_repo.checks()
    assert [len(each["annotations"]) for each in checks] == [0, 50, 51, 130]
    assert {each["conclusion"] for each in checks} == {"neutral"}
    for token in (github_standin.actions_token(github_repo), github_standin.user_token("writer")):
        with pytest.raises(RequestRefused) as refused:
            write(token, 1)
        assert refused.value.reason_code == "missing_permission"
    assert len(github_repo.checks()) == len(checks)


def test_fold__is_seen_in_the_list_and_takes_the_permission(
    github_standin: GitHubStandin, github_repo: Repo
) -> None:
    github_repo.commit("feature", {"models/a.sql": "SELECT 1\n"}, start="main")
    pull = github_repo.create_pull("feature")
    pull.add_comment("Old news.")

    def fold(permissions: dict[str, str]) -> bool:
        client = GitHubClient(
            repository=github_repo.full_name,
            token=github_standin.actions_token(github_repo, permissions),
            api_url=github_standin.url,
            time=Clock().time(),
        )
        (there,) = client.list_comments(pull.number)
        client.fold_comment(there)
        (there,) = client.list_comments(pull.number)
        return there.minimized

    with pytest.raises(GitHubUnavailable, match="could not fold comment"):
        fold({"pull-requests": "read"})
    assert not pull.comments()[0]["minimized"]
    assert fold({"pull-requests": "write"})


def test_dispatch__is_recorded_with_its_inputs(
    github_standin: GitHubStandin, github_repo: Repo, connect: Connect
) -> None:
    github_repo.add_workflow("sqlmesh-apply.yml", {"pr-number": True, "plan-id": False})
    token = github_standin.actions_token(github_repo, {"actions": "write"})
    repo = connect(token).get_repo(github_repo.full_name)
    workflow = repo.get_workflow("sqlmesh-apply.yml")
    inputs = {"pr-number": "7", "plan-id": "0123456789ab"}
    assert workflow.create_dispatch("main", inputs)
    made = github_repo.dispatches
    assert [(d.workflow, d.ref, dict(d.inputs), d.login) for d in made] == [
        ("sqlmesh-apply.yml", "main", inputs, ACTIONS_BOT)
    ]
    event = github_repo.dispatch_event(made[0])
    assert (event["inputs"], event["sender"]["login"]) == (inputs, ACTIONS_BOT)
    assert repo.get_workflow_run(made[0].run_id).event == "workflow_dispatch"
    for ref, wrong in (("nowhere", inputs), ("main", {}), ("main", {**inputs, "typo": "1"})):
        assert not workflow.create_dispatch(ref, wrong)
    assert statuses(github_standin)[-3:] == [422, 422, 422]
    with pytest.raises(UnknownObjectException):
        repo.get_workflow("absent.yml")
    powerless = connect(github_standin.actions_token(github_repo)).get_repo(github_repo.full_name)
    assert not powerless.get_workflow("sqlmesh-apply.yml").create_dispatch("main", inputs)
    assert len(github_repo.dispatches) == 1


def test_artifact__is_listed_and_downloaded(
    github_standin: GitHubStandin, github_repo: Repo, connect: Connect
) -> None:
    workflow = github_repo.add_workflow("sqlmesh-review.yml")
    run = github_repo.add_run(workflow, "main")
    stored = github_repo.add_artifact(run, "report-pr-7", {"report.json": b"{}"})
    token = github_standin.actions_token(github_repo, {"actions": "read"})
    repo = connect(token).get_repo(github_repo.full_name)
    (found,) = repo.get_workflow_run(run.id).get_artifacts()
    assert [a.name for a in repo.get_artifacts(name="report-pr-7")] == [found.name]
    assert found.raw_data["digest"] == stored.digest
    answer = requests.get(
        found.archive_download_url, headers={"Authorization": f"Bearer {token}"}, timeout=5
    )
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.read("report.json") == b"{}"
    assert [r.id for r in repo.get_workflow_runs()] == [run.id]


# Faults


def test_faults__work_in_front_of_the_stateful_stand_in(
    github_standin: GitHubStandin, github_repo: Repo, connect: Connect
) -> None:
    github_repo.commit("feature", {"a": "1"}, start="main")
    pull = github_repo.create_pull("feature")
    github_standin.script.on(
        "POST", r"/repos/.*/comments", script.server_error(502, store_first=True)
    )
    seen = connect(github_standin.actions_token(github_repo)).get_repo(github_repo.full_name)
    with pytest.raises(GithubException) as lost:
        seen.get_pull(pull.number).create_issue_comment("stored all the same")
    assert lost.value.status == 502
    assert [c["body"] for c in pull.comments_by(ACTIONS_BOT)] == ["stored all the same"]
