"""The traffic check finds what is wrong, and its list of exceptions is not stale."""

from __future__ import annotations

import pytest
import requests

from tests.github_standin.client import connect_to
from tests.github_standin.deviations import DEVIATIONS, Deviation
from tests.github_standin.local_git import LocalGit
from tests.github_standin.standin import GitHubStandin

pytestmark = pytest.mark.standin


def test_conformance__names_what_the_client_and_the_stand_in_do_wrong(
    github_standin_process: GitHubStandin,
) -> None:
    standin = github_standin_process
    standin.reset()
    repo = standin.make_repo()
    repo.commit("main", {"a": "1"})
    headers = {"Authorization": f"Bearer {standin.user_token('author')}"}
    home = f"{standin.url}/repos/{repo.full_name}"
    issue = repo.create_issue()
    for method, path, payload in (
        ("POST", f"/issues/{issue}/comments", {"text": "wrong name"}),
        ("GET", f"/issues/{issue}/comments?page_size=3", None),
        ("GET", f"/issues/{issue}/comments?since=2024-01-01T00:00:00Z", None),
        ("GET", "/no/such/thing", None),
        ("GET", "", None),
    ):
        requests.request(method, home + path, json=payload, headers=headers, timeout=5)
    found = [str(finding) for finding in standin.findings()]
    with pytest.raises(AssertionError, match="unknown query parameter"):
        standin.assert_conformant()
    standin.reset()
    assert len(found) == 4, found
    assert "'body' is a required property" in found[0]
    assert "unknown query parameter 'page_size'" in found[1]
    assert "[response]" in found[2] and "501" in found[2]
    assert "GitHub has no such operation" in found[3]


def test_deviations__each_still_occurs(
    github_standin_process: GitHubStandin, local_git: LocalGit
) -> None:
    github_standin_process.conformance.used.clear()
    assert standin_tour(github_standin_process, local_git) == set()
    assert github_standin_process.unused_deviations() == []


def standin_tour(standin: GitHubStandin, local: LocalGit) -> set[str]:
    """Visit what emulate serves and the bot may use; returns the findings."""
    standin.reset()
    repo = standin.make_repo()
    local.commit({"a/b.txt": b"1\n"}, "One")
    local("checkout", "-q", "-b", "feature")
    local.commit({"a/b.txt": b"2\n"}, "Two")
    repo.push_git(local.root, {"main": "main", "feature": "feature"})
    pull = repo.create_pull("feature")
    client = connect_to(standin.url, standin.user_token("acme"))
    seen = client.get_repo(repo.full_name)
    opened = seen.get_pull(pull.number)
    assert seen.get_contents("a/b.txt", ref="feature")
    assert seen.get_git_ref("heads/main").ref == "refs/heads/main"
    assert seen.compare("main", "feature").files
    assert seen.get_branch("main").name == "main"
    assert seen.get_commit("main").sha == repo.tip("main")
    assert list(seen.get_pulls(state="all"))
    assert list(opened.get_commits())
    assert opened.as_issue().number == pull.number
    assert client.get_user("writer").login == "writer"
    made = seen.create_issue("by a client")
    made.create_comment("text").delete()
    found = {str(finding) for finding in standin.findings()}
    standin.reset()
    return found


def test_deviation__covers_only_its_own_finding() -> None:
    line = Deviation("GET /a", "response", "200: .*", "because")
    assert line.covers("GET /a", "response", "200: x\ny")
    assert not line.covers("GET /a/b", "response", "200: x")
    assert not line.covers("GET /a", "request", "200: x")
    assert all(one.reason for one in DEVIATIONS)
