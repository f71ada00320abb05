"""What the tests of the GitHub client share: a clock that nobody waits for, a server, answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ci_bot.bot.github.client import GitHubClient
from ci_bot.bot.github.failures import PATIENT, GitHubRateLimits
from ci_bot.bot.github.transport import GitHubClientTime
from ci_bot.bot.report.markdown.marker import encode_comment_marker
from ci_bot.protocol.comment import Marker
from tests.github_standin.script import Reply
from tests.github_standin.scripted import ScriptedServer

REPO = "octo/flights"
ROOT = f"/repos/{REPO}"
PULL = f"{ROOT}/pulls/7"
LIST = f"{ROOT}/issues/7/comments"
ME = "github-actions[bot]"
HEAD = "a" * 40
APP, PERSON = "ghs_" + "x" * 36, "ghp_" + "x" * 36
NOW = 1_787_000_000.0


def named(value: object) -> str:
    """A short name for a parameter in the test's id."""
    if isinstance(value, Reply):
        limits = "".join(f"-{name}" for name in value.headers if name.startswith("Retry"))
        kept = "-stored" if value.store_first else ""
        return ("reset" if value.reset else str(value.status)) + limits + kept
    return getattr(value, "__name__", str(value))


class Clock:
    """Time that passes only where somebody sleeps; the sleeps are kept."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.passed = 0.0

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.passed += seconds

    def time(self) -> GitHubClientTime:
        return GitHubClientTime(
            now=lambda: NOW + self.passed,
            monotonic=lambda: self.passed,
            sleep=self.sleep,
            jitter=lambda: 0.0,
        )


@contextmanager
def scripted_github() -> Iterator[ScriptedServer]:
    """The server; afterwards every scripted answer must have been asked for."""
    with ScriptedServer(ME) as started:
        yield started
        unused = started.script.unused()
        if unused:
            raise AssertionError(f"nobody asked for {unused}")


def client(
    server: ScriptedServer, clock: Clock, *, token: str = APP, limits: GitHubRateLimits = PATIENT
) -> GitHubClient:
    return GitHubClient(
        repository=REPO, token=token, api_url=server.url, time=clock.time(), limits=limits
    )


def asked(server: ScriptedServer) -> list[str]:
    return [f"{each.request.method} {each.request.path}" for each in server.requests]


def pull(**changes: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "number": 7,
        "state": "open",
        "draft": False,
        "merged": False,
        "mergeable": True,
        "merge_commit_sha": "c" * 40,
        "html_url": "https://github.example/octo/flights/pull/7",
        "user": {"login": "ada"},
        "head": {"sha": HEAD, "ref": "more-delays", "repo": {"full_name": REPO}},
        "base": {"sha": "b" * 40, "ref": "main", "repo": {"full_name": REPO}},
    }
    return {**answer, **changes}


def body(text: str, **changes: Any) -> str:
    facts: dict[str, Any] = {
        "key": "analytics",
        "pr": 7,
        "head": HEAD,
        "env": "pr_7",
        "phase": "planned",
        "run_id": 100,
        "valid_at": "2026-08-22T10:00:00Z",
    }
    return f"{encode_comment_marker(Marker(**{**facts, **changes}))}\n{text}"
