"""The scripted fault server, as PyGithub meets it."""

from __future__ import annotations

import pytest
import requests
from github import GithubRetry

from tests.github_standin import script
from tests.github_standin.client import connect_to
from tests.github_standin.scripted import ScriptedServer


@pytest.mark.parametrize(
    "reply",
    [
        script.server_error(500),
        script.server_error(503),
        script.secondary_limit(0),
        script.too_many_requests(0),
        script.connection_reset(),
    ],
    ids=["500", "503", "403-secondary", "429", "reset"],
)
def test_scripted__a_read_succeeds_after_one_fault(
    scripted_github: ScriptedServer, reply: script.Reply
) -> None:
    scripted_github.github.add_comment("acme/warehouse", 7, "here")
    scripted_github.script.on("GET", r".*/comments", reply)
    retry = GithubRetry(total=2, backoff_factor=0, secondary_rate_wait=0)
    client = connect_to(scripted_github.url, "ghs_x", lazy=True, retry=retry)
    issue = client.get_repo("acme/warehouse").get_issue(7)
    assert [comment.body for comment in issue.get_comments()] == ["here"]
    assert len(scripted_github.requests) == 2


def test_scripted__silence_outlasts_the_client(scripted_github: ScriptedServer) -> None:
    scripted_github.script.on("POST", r".*/comments", script.silence(store_first=True))
    client = connect_to(scripted_github.url, "ghs_x", lazy=True, timeout=1)
    issue = client.get_repo("acme/warehouse").get_issue(7)
    with pytest.raises(requests.exceptions.ReadTimeout):
        issue.create_comment("stored")
    assert [c["body"] for c in scripted_github.github.comments("acme/warehouse", 7)] == ["stored"]
    assert len(scripted_github.writes) == 1


def test_script__rules_are_spent_in_order() -> None:
    with ScriptedServer() as server:
        server.github.serve("GET", "/x", {"ok": True})
        server.script.on("GET", "/x", script.server_error(500), script.server_error(502), skip=1)
        server.script.on("GET", "/y", script.broken_json(), forever=True)
        codes = [requests.get(server.url + "/x", timeout=5).status_code for _ in range(4)]
        assert codes == [200, 500, 502, 200]
        for _ in range(2):
            with pytest.raises(requests.exceptions.JSONDecodeError):
                requests.get(server.url + "/y", timeout=5).json()
        server.script.on("DELETE", "/never", script.server_error())
        assert server.script.unused() == ["DELETE /never: 0 of 1 replies used"]
