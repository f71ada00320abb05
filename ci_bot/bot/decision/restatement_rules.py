"""What prod builds again after the merge, because an owner of a model has asked for it."""

from __future__ import annotations

from collections.abc import Iterator

from ci_bot.bot.decision.risks import (
    BotFacts,
    TeamLimits,
    count_noun,
    judges,
    make_risk,
    quote_names,
)
from ci_bot.protocol.cost import executor_time
from ci_bot.protocol.plan import sum_planned_work
from ci_bot.protocol.review_inputs import ProdRestatement, describe_range_of_restatement_document
from ci_bot.protocol.review_report import ReviewFacts, Risk
from ci_bot.protocol.rules import find_rule

RESTATED_AFTER_MERGE = find_rule("restated-after-merge")


@judges(RESTATED_AFTER_MERGE)
def find_risks_of_prod_restatements(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """Each recorded restatement; one that no longer holds is heavier, because a deployment ends."""
    for item in facts.prod_restatements:
        recorded = item.recorded
        off = f"`/sqlmesh restate {recorded.model} off`"
        request = (
            f"`@{recorded.by}` asks prod to build it again "
            f"{describe_range_of_restatement_document(recorded)}"
        )
        if item.problem is not None:
            yield make_risk(
                RESTATED_AFTER_MERGE,
                f"{request}, and that does not hold any more: {item.problem} A deployment refuses "
                "it.",
                f"an owner asks again, or it is taken back with {off}",
                severity="high",
                model=recorded.model,
                path=item.path,
            )
            continue
        yield make_risk(
            RESTATED_AFTER_MERGE,
            f"{request}, after the merge ({recorded.reason}). {_describe_work(item)}",
            f"the owners of these models agree, or it is taken back with {off}",
            model=recorded.model,
            path=item.path,
        )


def _describe_work(item: ProdRestatement) -> str:
    work = sum_planned_work(item.work)
    built = quote_names(one.model for one in item.work)
    hours = item.cost.executor_hours_mid if item.cost is not None else None
    cost = "" if hours is None else f", about {executor_time(hours)} of executor time"
    sentences = [
        f"That builds {count_noun(len(item.work), 'model')} again ({built}): "
        f"{count_noun(work.intervals, 'interval')}{cost}."
    ]
    if item.kept:
        one = len(item.kept) == 1
        sentences.append(
            f"{quote_names(item.kept)} {'reads' if one else 'read'} them and "
            f"{'keeps its' if one else 'keep their'} rows, because of `disable_restatement`."
        )
    if item.environments:
        sentences.append(f"It also clears data of {quote_names(item.environments)}.")
    return " ".join(sentences)
