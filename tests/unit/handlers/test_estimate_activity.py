"""Who may ask for an estimate, what is answered, and what becomes of the limit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ci_bot.bot.actions import activities
from ci_bot.bot.actions.inputs import ActionInputs, ActionSettings
from ci_bot.bot.github.port import PullComment
from ci_bot.bot.handlers import estimate
from ci_bot.bot.handlers.apply import _get_budget, _get_price
from ci_bot.bot.report.model.context import DecisionOverrideView
from ci_bot.errors import BotError
from ci_bot.protocol.apply_report import EstimateDocument
from ci_bot.protocol.base import Failure
from ci_bot.protocol.cost import ModelEstimate, Price
from ci_bot.protocol.plan import Cost
from ci_bot.protocol.review_report import PolicyUsed
from tests.factories import HEAD, VERSIONS, make_report
from tests.publishing import RUNNER, Memory, context_of, publisher_of
from tests.unit.handlers.test_accept_activity import BASE, MERGE, comment

COST = Cost(
    intervals=10,
    batches=2,
    tables_rebuilt=1,
    tables=3,
    unknown=["shop.on_top"],
    executor_hours_mid=2.5,
    basis="1 of 3 models by the size of what they will read.",
    models=[
        ModelEstimate(
            model="shop.by_customer",
            layer="input_size",
            runs=3,
            input_bytes=40_000_000_000,
            executor_hours_low=1,
            executor_hours_mid=2.5,
            executor_hours_high=5,
        )
    ],
)


@dataclass
class GitHub(Memory):
    asked: PullComment = field(default_factory=lambda: comment("/sqlmesh estimate"))

    def get_comment(self, comment_id: int) -> PullComment:
        self._call("get_comment")
        return self.asked


@dataclass
class Client:
    """The part of a client that an estimate needs."""

    answer: Any = None
    policy: str | None = None
    requests: list[dict[str, Any]] = field(default_factory=list)
    projects: tuple[str, ...] = (".",)
    git: Any = None
    objects: Any = None

    def __post_init__(self) -> None:
        self.git = self.objects = self

    def has_commit(self, commit: str) -> bool:
        return True

    @contextmanager
    def open_commit_files(self, commit: str, *, at_most: int) -> Iterator[Any]:
        yield lambda _path: self.policy.encode() if self.policy and commit == BASE else None

    def read_head(self) -> str:
        return MERGE

    def list_parents(self, commit: str) -> list[str]:
        return [BASE, HEAD]

    def make_request(self, kind: Any, **fields: Any) -> Any:
        self.requests.append(fields)
        return fields

    def request_estimate(self, request: Any) -> Any:
        return self.answer or EstimateDocument(
            environment="pr_142",
            plan_id="9" * 64,
            cost=COST,
            seconds=1,
            timings={},
            versions=VERSIONS,
        )


def run(
    github: GitHub,
    *,
    limit: float | None = None,
    answer: Any = None,
    by: int | None = 99,
    policy: str | None = None,
) -> tuple[int, Client]:
    settings = ActionSettings(inputs=ActionInputs(max_executor_hours=limit), runner=RUNNER)
    client = Client(answer, policy)
    activity = activities.Estimate(number=142, requested_by="grace", comment_id=by)
    context = context_of(publisher_of(github, settings=settings), github, client)
    return estimate.EstimateHandler().run(activity, context), client


@pytest.mark.parametrize(("limit", "code"), [(None, 0), (2.5, 0), (2.4, 1)])
def test_estimate__says_the_figures_and_what_they_are_made_from(
    limit: float | None, code: int
) -> None:
    github = GitHub()
    ended, client = run(github, limit=limit)
    assert ended == code
    [request] = client.requests
    assert request["environment"] == "pr_142"
    text = github.reply
    assert "at least **2 h 30 min** of executor time" in text
    assert "| `shop.by_customer` | 2 h 30 min | the size of its input, 40" in text
    assert "Not known, and not in the sum: `shop.on_top`." in text
    assert ("⛔" in text) == (code == 1)


def test_estimate__holds_the_limit_against_what_prod_builds_too() -> None:
    known = COST.models[0]
    in_prod = COST.model_copy(
        update={
            "executor_hours_mid": 40.0,
            "unknown": [],
            "models": [
                known.model_copy(update={"executor_hours_mid": 30.0}),
                known.model_copy(update={"model": "shop.beside", "executor_hours_mid": 10.0}),
            ],
        }
    )
    answer = EstimateDocument(
        environment="pr_142",
        plan_id="9" * 64,
        cost=COST,
        after_merge=in_prod,
        seconds=1,
        timings={},
        versions=VERSIONS,
    )
    github = GitHub()
    code, _ = run(github, limit=39.0, answer=answer)
    assert code == 1
    text = github.reply
    assert "⛔" in text
    assert "What `prod` builds after the merge: about **40 h** of executor time" in text
    assert "| Model | `pr_142` | `prod` | From |" in text
    assert "| `shop.by_customer` | 2 h 30 min | 30 h | the size of its input" in text
    assert "| `shop.beside` | – | 10 h |" in text
    assert run(GitHub(), limit=40.0, answer=answer)[0] == 0


@pytest.mark.parametrize(("given", "code"), [(None, 1), (3.0, 0)])
def test_estimate__knows_the_policys_limit_and_price(given: float | None, code: int) -> None:
    """An input counts before it."""
    policy = (
        "version: 1\nlimits:\n  max-executor-hours: 2\ncomment:\n  executor-hour-price: 2 EUR\n"
    )
    github = GitHub()
    ended, client = run(github, limit=given, policy=policy)
    assert ended == code
    assert client.requests[0]["executor_hour_price"] == Price(amount=2, currency="EUR")
    assert ("the limit is 2 h" in github.reply) == (given is None)


@pytest.mark.parametrize(
    ("pull", "role", "body", "reason"),
    [
        ({}, "read", "/sqlmesh estimate", "permission"),
        ({"fork": True}, "write", "/sqlmesh estimate", "fork"),
        ({"head_sha": "d" * 40}, "write", "/sqlmesh estimate", "wrong_checkout"),
        ({}, "write", "/sqlmesh plan", "bad_comment"),
    ],
)
def test_estimate__is_refused_before_anything_is_loaded(
    pull: dict[str, Any], role: Any, body: str, reason: str
) -> None:
    github = GitHub(asked=comment(body), role=role)
    github.pull = replace(github.pull, **pull)
    with pytest.raises(BotError) as caught:
        run(github)
    assert (caught.value.reason_code, caught.value.exit_code) == (reason, 3)


def test_estimate__of_a_project_that_does_not_load_says_why() -> None:
    failure = Failure(stage="load", reason_code="failed", exit_code=1, message="No.", hint="Do.")
    with pytest.raises(BotError) as caught:
        run(GitHub(), answer=failure)
    assert (caught.value.message, caught.value.hint, caught.value.exit_code) == ("No.", "Do.", 1)


@pytest.mark.parametrize(("given", "wanted"), [(None, "2 EUR"), ("3 USD", "3 USD")])
def test_price__of_the_policy_counts_where_no_input_has_one(given: str | None, wanted: str) -> None:
    price = Price.parse_price(given) if given else None
    settings = ActionSettings(inputs=ActionInputs(executor_hour_price=price), runner=RUNNER)
    used = PolicyUsed(source="base", executor_hour_price=Price.parse_price("2 EUR"))
    assert _get_price(settings, make_report(policy=used)) == Price.parse_price(wanted)
    assert _get_price(settings, make_report()) == price


@pytest.mark.parametrize(
    ("given", "policy", "override", "wanted"),
    [
        (None, None, False, None),
        (5.0, None, False, 5.0),
        (None, {"max_executor_hours": 7}, False, 7.0),
        (5.0, {"max_executor_hours": 7}, False, 5.0),
        # What is no reason for No-Go is none to refuse, either.
        (5.0, {"budget_blocks": False}, False, None),
        (5.0, None, True, None),
    ],
)
def test_budget__is_what_makes_a_plan_no_go(
    given: float | None, policy: dict[str, Any] | None, override: bool, wanted: float | None
) -> None:
    settings = ActionSettings(inputs=ActionInputs(max_executor_hours=given), runner=RUNNER)
    used = PolicyUsed(source="base", **policy) if policy is not None else None
    own = make_report(policy=used)
    overridden = DecisionOverrideView(by="ada", reason="now") if override else None
    assert _get_budget(settings, own, overridden=overridden) == wanted
