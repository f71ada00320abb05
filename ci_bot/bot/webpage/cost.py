"""What it costs: expected before, and counted afterwards. Unknown is said, and never drawn as 0."""

from __future__ import annotations

from ci_bot.bot.comment.text import words
from ci_bot.bot.webpage import cells
from ci_bot.bot.webpage.cells import PageItem
from ci_bot.contracts.documents.apply import ApplyDocument
from ci_bot.contracts.documents.plan import Cost
from ci_bot.contracts.documents.report import Report


def cost_section(report: Report | None, applied: ApplyDocument | None) -> list[PageItem]:
    """A bar for each figure, all on one scale."""
    estimates: list[tuple[str, Cost]] = []
    if report is not None and report.plan_id is not None:
        estimates.append((f"Expected in `{report.environment}`", report.cost))
        if report.prod_plan and report.prod_plan.cost:
            estimates.append(("Expected in `prod` after the merge", report.prod_plan.cost))
    elif applied is not None and applied.estimate is not None:
        estimates.append((f"Expected in `{applied.environment}`", applied.estimate))
    took = applied.executor_hours if applied else None
    if not estimates and took is None:
        return []
    known = [c.executor_hours_high or c.executor_hours_mid for _, c in estimates] + [took]
    most = max((hours for hours in known if hours is not None), default=0.0) or 1.0
    rows = [_expected(label, cost, most) for label, cost in estimates]
    if applied is not None:
        rows.append(_took(applied, most))
    table = cells.table(
        [
            ("Figure", "text"),
            ("Executor time", "bars"),
            ("Tables", "number"),
            ("Intervals", "number"),
            ("Price", "text"),
            ("How it is known", "text"),
        ],
        rows,
        key="cost",
    )
    return cells.section("cost", "Cost", table)


def _expected(label: str, cost: Cost, most: float) -> list[object]:
    mid, low, high = cost.executor_hours_mid, cost.executor_hours_low, cost.executor_hours_high
    price = "–" if cost.price is None else f"{words.money(cost.price)} at your rate"
    return [
        label,
        [
            cells.bar("", None if mid is None else mid / most, cost_words(cost)),
            *(
                [
                    cells.bar(
                        "to",
                        high / most,
                        f"{words.executor_time(low)} to {words.executor_time(high)}",
                        "faint",
                    )
                ]
                if low is not None and high is not None and not cost.unknown
                else []
            ),
        ],
        cost.tables,
        cost.intervals,
        f"at least {price}" if cost.unknown and cost.price is not None else price,
        cost.basis,
    ]


def cost_words(cost: Cost) -> str:
    """ "about 14 min", "at least 20 s; 3 of 4 tables unknown", "unknown"."""
    if cost.executor_hours_mid is None:
        return "unknown" if cost.tables or cost.intervals else "nothing to build"
    hours = words.executor_time(cost.executor_hours_mid)
    if cost.unknown:
        unknown = f"{len(cost.unknown):,} of {words.count(cost.tables, 'table')} unknown"
        return f"at least {hours}; {unknown}"
    return f"about {hours}"


def _took(applied: ApplyDocument, most: float) -> list[object]:
    hours = applied.executor_hours
    text = "not measured" if hours is None else words.executor_time(hours)
    return [
        f"Took in `{applied.environment}`",
        [cells.bar("", None if hours is None else hours / most, text, "accent")],
        sum(model.intervals > 0 and model.action != "recreate_view" for model in applied.models),
        sum(m.intervals for m in applied.models if m.action != "recreate_view"),
        "–",
        f"The whole apply took {words.duration(applied.seconds)}.",
    ]
