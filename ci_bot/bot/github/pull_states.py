"""Which of many pull requests are open, in a handful of requests. Pure but for its two arguments.

Asking for each of 200 numbers would take 200 requests. The list of open pull requests decides
them all at once: a number that is not on it is closed. That holds while the list is one page. Over
several pages a pull request that closes in between moves its successors one place forward, and one
of them can slip from the second page onto the first after that was read. Whoever removes an
environment by such a list would remove a live one. So with several pages a number counts as closed
only where GitHub said so itself, and what was not seen within the requests allowed is `unknown`:
left alone today, asked about again tomorrow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from ci_bot.bot.github.port import PER_PAGE, NotFound, PullRequest, PullState

MOST_REQUESTS = 5
_MOST_OPEN_PAGES = 50

PullPage = Callable[[Mapping[str, str | int]], tuple[list[PullRequest], bool]]


def pull_states(
    numbers: Collection[int], page: PullPage, get_pull: Callable[[int], PullRequest]
) -> dict[int, PullState]:
    """The state of each number, with at most `MOST_REQUESTS` requests where 300 or fewer are open.

    In a repository with more, it is the pages of the open ones and two.

    Args:
        numbers: The pull requests to ask about.
        page: One page of the list of pull requests for a query, and whether there is a next one.
        get_pull: One pull request.
    """
    if not numbers:
        return {}
    spent, is_open = _open_numbers(page)
    states = {
        number: PullState(state="open", merged=False) for number in numbers if number in is_open
    }
    if spent == 1:
        states |= {n: PullState(state="closed") for n in numbers if n not in is_open}
    undecided = {number for number in numbers if _unsure(states.get(number))}
    turn, more, limit = 1, True, max(MOST_REQUESTS, spent + 2)
    while undecided and more and spent < limit:
        # Whatever closed lately comes first, and that is what a nightly sweep looks for.
        query = {"state": "closed", "sort": "updated", "direction": "desc"}
        closed, more = page({**query, "per_page": PER_PAGE, "page": turn})
        states |= {
            pull.number: PullState(state="closed", merged=pull.merged)
            for pull in closed
            if pull.number in undecided and not pull.open
        }
        undecided -= {pull.number for pull in closed}
        turn, spent = turn + 1, spent + 1
    for number in sorted(undecided):
        if spent >= limit:
            break
        states[number] = _ask(number, get_pull)
        spent += 1
    return {number: states.get(number, PullState(state="unknown")) for number in numbers}


def _open_numbers(page: PullPage) -> tuple[int, set[int]]:
    """How many pages the list of open pull requests has, and the numbers on it."""
    numbers: set[int] = set()
    for turn in range(1, _MOST_OPEN_PAGES + 1):
        query = {"state": "open", "sort": "created", "direction": "asc"}
        pulls, more = page({**query, "per_page": PER_PAGE, "page": turn})
        numbers |= {pull.number for pull in pulls}
        if not more:
            return turn, numbers
    return _MOST_OPEN_PAGES, numbers


def _unsure(state: PullState | None) -> bool:
    return state is None or (state.state == "closed" and state.merged is None)


def _ask(number: int, get_pull: Callable[[int], PullRequest]) -> PullState:
    try:
        pull = get_pull(number)
    except NotFound:
        return PullState(state="unknown")
    return PullState(state="open" if pull.open else "closed", merged=pull.merged)
