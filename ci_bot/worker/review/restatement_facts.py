"""The restatements of a pull request in a review: those in the ledger, and the requested one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ci_bot.errors import BadInput, BotError
from ci_bot.protocol.base import Failure
from ci_bot.protocol.messages import RestateAnswer, RestateRequest
from ci_bot.protocol.plan import Backfill, ProdPlan
from ci_bot.protocol.review_inputs import ProdRestatement, RecordedRestatement, RestatementWish
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import make_failure_of_error, report_times
from ci_bot.worker.planning import describe_plan, prod_restatements
from ci_bot.worker.project import make_project_place, opening
from ci_bot.worker.review.plan_facts import ReviewedPlanFacts
from ci_bot.worker.runtime import WorkerPhaseClock
from ci_bot.worker.state_store import HIDDEN_TABLES_HINT, KEEP_DAYS, Ledger


@dataclass(frozen=True)
class ReviewedRestatements:
    """The restatements that count, oldest first, and why the requested one does not."""

    items: list[ProdRestatement] = field(default_factory=list)
    refused: Failure | None = None
    wished: bool = False

    def list_work(self) -> list[Backfill]:
        """Lists the work in prod of the restatements without a problem."""
        return [work for item in self.items if item.problem is None for work in item.work]

    def list_recorded(self) -> list[RecordedRestatement]:
        """Lists the recorded restatements; they name the models whose owners have to be known."""
        return [item.recorded for item in self.items]

    def after_plan(self, merged: ProdPlan | None) -> ReviewedRestatements:
        """Returns the same with the merge's effect: after a failing one nothing is restated."""
        if merged is None:
            return self
        if merged.would_fail:
            why = "The plan for prod fails, so nothing is built again after it."
            return replace(
                self, items=[_mark_recorded_restatement_unfit(item, why) for item in self.items]
            )
        if not self.wished or self.refused is not None:
            return self
        *others, wish = self.items
        recorded = wish.recorded.model_copy(update={"prod_plan_id": merged.plan_id})
        return replace(self, items=[*others, wish.model_copy(update={"recorded": recorded})])


def plan_restatements(facts: ReviewedPlanFacts) -> ReviewedRestatements:
    """Plans each recorded restatement again, and the requested one."""
    wish, refused = facts.request.wish, None
    requested: ProdRestatement | None = None
    if wish is not None:
        try:
            requested = _plan_wished_restatement(facts, wish)
        except BotError as error:
            refused = make_failure_of_error(error, stage="restate", repository=facts.repository)
    replaced = requested.recorded.model if requested is not None else None
    items = [
        _plan_recorded_restatement(facts, item)
        for item in _list_recorded_restatements(facts)
        if item.model != replaced
    ]
    return ReviewedRestatements(
        items=[*items, requested] if requested is not None else items,
        refused=refused,
        wished=requested is not None,
    )


def _list_recorded_restatements(facts: ReviewedPlanFacts) -> Iterator[RecordedRestatement]:
    """Yields the restatements that the ledger holds; none without prod's state."""
    if facts.opened.baseline != "state":
        return
    # A deployment must not skip what owners have recorded; a review reports this in a note.
    hidden = facts.read_ledger.describe_hidden_tables() if facts.is_deployment else None
    if hidden is not None:
        raise BadInput(
            f"{hidden}, so nobody knows what owners let prod build again.",
            hint=HIDDEN_TABLES_HINT,
            reason_code="ledger_hidden",
        )
    for number in facts.request.restated_by:
        yield from facts.read_ledger.list_restatements(facts.request.owner.name, number)


def _plan_wished_restatement(facts: ReviewedPlanFacts, wish: RestatementWish) -> ProdRestatement:
    if facts.opened.baseline != "state":
        raise BadInput(
            "Without prod's state nobody knows what prod holds, so nothing can be restated.",
            hint="Give apply.yml the state that prod is recorded in.",
            reason_code="no_prod",
        )
    fqn = prod_restatements.find_model_to_restate(facts.opened.context, wish.model, facts.names)
    window = prod_restatements.parse_window_of_restatement(
        wish.start, wish.end, now=report_times.to_milliseconds(wish.at)
    )
    planned = _plan_reviewed_restatement_in_prod(facts, fqn, window)
    recorded = RecordedRestatement(
        model=facts.names.short_name(fqn),
        start=report_times.format_iso_in_message(window.start)
        if window.start is not None
        else None,
        end=report_times.format_iso_in_message(window.end) if window.end is not None else None,
        fingerprint=planned.fingerprint,
        rebuilds=planned.rebuilds,
        by=wish.by,
        at=wish.at,
        reason=wish.reason,
        comment_id=wish.comment_id,
        head_sha=facts.request.owner.head_sha,
        prod_plan_id=None,
    )
    return _describe_reviewed_restatement(facts, planned, recorded, None)


def _plan_recorded_restatement(
    facts: ReviewedPlanFacts, item: RecordedRestatement
) -> ProdRestatement:
    try:
        fqn = prod_restatements.find_model_to_restate(facts.opened.context, item.model, facts.names)
        start, end = (
            None if moment is None else report_times.to_milliseconds(moment)
            for moment in (item.start, item.end)
        )
        planned = _plan_reviewed_restatement_in_prod(
            facts, fqn, prod_restatements.RestatedWindow(start, end)
        )
    except BotError as error:
        return ProdRestatement(recorded=item, problem=error.message)
    return _describe_reviewed_restatement(
        facts, planned, item, _find_difference_from_reviewed_restatement(planned, item)
    )


def _plan_reviewed_restatement_in_prod(
    facts: ReviewedPlanFacts, fqn: str, window: prod_restatements.RestatedWindow
) -> prod_restatements.PlannedRestatement:
    return prod_restatements.plan_restatement(
        facts.opened.context,
        fqn,
        window,
        facts.plan_request,
        facts.names,
        environment=facts.request.environment,
    )


def _find_difference_from_reviewed_restatement(
    planned: prod_restatements.PlannedRestatement, item: RecordedRestatement
) -> str | None:
    """Describes how a restatement differs from the reviewed one; None if it does not."""
    if planned.fingerprint != item.fingerprint:
        return f"`{item.model}` or the data that it reads has changed since."
    more = sorted(set(planned.rebuilds) - set(item.rebuilds))
    if more:
        shown = ", ".join(f"`{name}`" for name in more[:3])
        rest = f" and {len(more) - 3} more" if len(more) > 3 else ""  # noqa: PLR2004 - as shown
        return f"It would also build {shown}{rest} again, which nobody has reviewed."
    return None


def _describe_reviewed_restatement(
    facts: ReviewedPlanFacts,
    planned: prod_restatements.PlannedRestatement,
    recorded: RecordedRestatement,
    problem: str | None,
) -> ProdRestatement:
    described = ProdRestatement(
        recorded=recorded,
        path=describe_plan.get_path_of_planned_model(planned.snapshot, facts.repository),
        window=planned.window,
        work=planned.work,
        cost=facts.estimate_cost(planned.work),
        kept=planned.kept,
        environments=planned.environments,
    )
    return described if problem is None else _mark_recorded_restatement_unfit(described, problem)


def _mark_recorded_restatement_unfit(item: ProdRestatement, problem: str) -> ProdRestatement:
    return item.model_copy(
        update={"problem": item.problem or problem, "window": None, "cost": None}
    )


# A restatement is recorded in the ledger, which no pull request's review can change.


def write_restatement_to_ledger(
    request: RestateRequest, clock: WorkerPhaseClock, on_spark_start: Callable[[], None]
) -> RestateAnswer:
    """Writes a restatement into the ledger, or takes it back. Reads the configuration, no model.

    Raises:
        BadInput: the configuration is broken, or there is no state yet.
    """
    place = make_project_place(request, request.projects)
    with opening.open_project_state_to_write(place, on_spark_start, clock) as context:
        ledger = Ledger(sqlmesh_compat.get_sqlmesh_state_adapter(context))
        ledger.prepare_tables()
        whose = (request.owner.name, request.owner.pr_number or 0)
        before = ledger.list_restatements(*whose)
        item = request.restatement
        if item is None:
            ledger.delete_restatement(*whose, request.model)
        else:
            oldest = report_times.to_milliseconds(item.at) - KEEP_DAYS * 86_400_000
            ledger.write_restatement(
                *whose, item, forget_before=report_times.format_iso_in_message(oldest)
            )
        return RestateAnswer(before=before, restatements=ledger.list_restatements(*whose))
