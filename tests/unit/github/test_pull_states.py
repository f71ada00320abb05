"""Which of many pull requests are open: cheap, and never wrong in the dangerous direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from ci_bot.bot.github.port import (
    MOST_REQUESTS,
    NotFound,
    PullRequest,
    PullState,
    poll_states_of_github_pulls,
)
from ci_bot.errors import GitHubUnavailable


def pull(number: int, *, is_open: bool = True, merged: bool = False) -> PullRequest:
    return PullRequest(
        number=number,
        open=is_open,
        merged=merged,
        draft=False,
        mergeable=None,
        head_sha="a" * 40,
        head_ref="x",
        head_repository="octo/flights",
        base_sha="b" * 40,
        base_ref="main",
        merge_sha=None,
        author="ada",
        fork=False,
        url="",
    )


class Repository:
    """Lists of pull requests, a page at a time; `between` happens after each page."""

    def __init__(
        self, pulls: list[PullRequest], between: Callable[[], None] = lambda: None
    ) -> None:
        self.pulls = {each.number: each for each in pulls}
        self.requests = 0
        self._between = between

    def page(self, query: Mapping[str, str | int]) -> tuple[list[PullRequest], bool]:
        self.requests += 1
        wanted = [each for each in self.pulls.values() if each.open is (query["state"] == "open")]
        wanted.sort(key=lambda each: each.number, reverse=query["direction"] == "desc")
        start = (int(query["page"]) - 1) * int(query["per_page"])
        part = wanted[start : start + int(query["per_page"])]
        more = len(wanted) > start + int(query["per_page"])
        self._between()
        return part, more

    def get(self, number: int) -> PullRequest:
        self.requests += 1
        if number not in self.pulls:
            raise NotFound("no such pull request")
        return self.pulls[number]


def test_pull_states__two_hundred_environments_cost_at_most_five_requests() -> None:
    everything = [
        pull(n, is_open=n % 4 == 0, merged=n % 4 == 1) for n in range(1, 1_201) if n > 800
    ]
    repository = Repository(everything)
    numbers = list(range(801, 1_001))
    states = poll_states_of_github_pulls(numbers, repository.page, repository.get)
    assert repository.requests <= MOST_REQUESTS
    assert states == {
        n: PullState(state="open" if n % 4 == 0 else "closed", merged=n % 4 == 1) for n in numbers
    }


def test_pull_states__one_page_of_open_ones_decides_all() -> None:
    repository = Repository([pull(1), pull(2, is_open=False), pull(3, is_open=False, merged=True)])
    assert poll_states_of_github_pulls([1, 2, 3, 99], repository.page, repository.get) == {
        1: PullState(state="open", merged=False),
        2: PullState(state="closed", merged=False),
        3: PullState(state="closed", merged=True),
        99: PullState(state="unknown"),
    }
    assert poll_states_of_github_pulls([], repository.page, repository.get) == {}


def test_pull_states__one_that_slips_between_two_pages_is_never_called_closed() -> None:
    """Number 1 closes after the first page: 101 moves onto it, and is on none that is read."""
    repository = Repository([pull(n) for n in range(1, 151)])

    def close_the_first() -> None:
        repository.pulls[1] = pull(1, is_open=False)

    repository._between = close_the_first
    states = poll_states_of_github_pulls([101, 102, 1], repository.page, repository.get)
    assert states[101].state == "open"
    assert states[102].state == "open"
    assert states[1].state in ("open", "closed")


def test_pull_states__what_was_not_seen_is_unknown_and_not_closed() -> None:
    repository = Repository(
        [pull(n) for n in range(1, 151)] + [pull(n, is_open=False) for n in range(151, 1_000)]
    )
    states = poll_states_of_github_pulls(range(100, 500), repository.page, repository.get)
    assert repository.requests == MOST_REQUESTS
    assert states[120].state == "open"
    assert {states[n].state for n in range(151, 500)} == {"unknown"}


def test_pull_states__a_failure_is_no_answer() -> None:
    def page(query: Mapping[str, str | int]) -> tuple[list[PullRequest], bool]:
        raise GitHubUnavailable("down")

    with pytest.raises(GitHubUnavailable):
        poll_states_of_github_pulls([1], page, pull)
