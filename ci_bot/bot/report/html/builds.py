"""What is built where: in the environment now, and in prod after the merge, table by table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ci_bot.bot.report import words
from ci_bot.bot.report.html import cells
from ci_bot.bot.report.html.cells import PageItem
from ci_bot.bot.report.html.findings import HtmlReportSources
from ci_bot.bot.report.model.sentences import SENTENCES
from ci_bot.bot.report.words import short_window
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.plan import Backfill, Cost, ModelRange, ProdPlan, sum_planned_work
from ci_bot.protocol.review_report import Report

Extent = tuple[str | None, str | None]

_NOTE = (
    "One strip for each table, all on the same time axis, from {axis}. The first lane is what "
    "`prod` holds today, the second what `{env}` builds, the third what `prod` builds after the "
    "merge."
)


def make_building_section(sources: HtmlReportSources) -> list[PageItem]:
    """Makes a row for each table and view that the plan here or the plan for prod builds."""
    report, env = sources.report, sources.report.environment
    rows, axis = _make_build_rows(sources)
    if report.failure is not None and not rows:
        return []
    window = report.short_window
    parts = [
        *cells.make_prose_part(
            describe_work_in_html_row(report.backfill, f"`{env}` builds"),
            describe_work_in_html_row(report.prod_plan.full_backfill, SENTENCES.prod_builds_later)
            if report.prod_plan
            else None,
            short_window(window, env, report.options) if window else None,
        ),
        *cells.make_table_part(
            [
                ("Model", "name"),
                ("Kind", "text"),
                (f"In {env}", "value"),
                ("Batches", "number"),
                (SENTENCES.after_merge.capitalize(), "value"),
                ("Intervals", "strip"),
                ("What prod does with it", "text"),
                ("Table", "text"),
            ],
            rows,
            note=_NOTE.format(axis=cells.format_window_cell(*axis), env=env) if axis[0] else "",
            key="building",
        ),
        *cells.make_table_part(
            [("Model", "name"), ("Range", "text"), ("Clears the data of", "names")],
            [
                [
                    sources.make_model_cell(r.model),
                    cells.format_window_cell(r.start, r.end),
                    r.environments,
                ]
                for r in report.restatements
            ],
            title="Restatements",
            key="restatements",
        ),
        *cells.make_table_part(
            [("When", "text"), ("Change", "text"), ("Statement", "text")],
            [[s.when, s.change, _quote_statement(s.sql)] for s in report.statements],
            title=SENTENCES.statements_around,
            key="statements",
        ),
        *(_make_prod_part(report.prod_plan, sources) if report.prod_plan else []),
    ]
    return cells.make_section_part(
        "building", "What is built, and where", parts, len(rows), short="Work"
    )


def describe_work_in_html_row(items: Iterable[Backfill], who: str) -> str:
    """Returns "`pr_7` builds 4 tables, 368 intervals in 7 batches; 1 view."."""
    work = sum_planned_work(items)
    views = words.format_count(work.views, "view")
    if not work.tables:
        return f"{who} no table{f', {views}' if work.views else ''}."
    tables = (
        f"{words.format_count(work.tables, 'table')}, "
        f"{words.format_count(work.intervals, 'interval')}"
    )
    more = f"; {views}" if work.views else ""
    return f"{who} {tables} in {words.format_count(work.batches, 'batch')}{more}."


def _make_build_rows(sources: HtmlReportSources) -> tuple[list[list[Any]], Extent]:
    report = sources.report
    plan = report.prod_plan
    here = {item.model: item for item in report.backfill}
    later = {item.model: item for item in plan.full_backfill} if plan else {}
    left = {item.model: item for item in plan.backfill} if plan else {}
    held, gaps, lost = (
        (
            _group_rows_by_model(plan.held),
            _group_rows_by_model(plan.gaps),
            _group_rows_by_model(plan.lost),
        )
        if plan
        else ({}, {}, {})
    )
    spans: list[Extent] = [(item.start, item.end) for item in (*here.values(), *later.values())]
    axis = _cover_extents([*spans, *((one.start, one.end) for one in (plan.held if plan else []))])
    rows = []
    for model in sorted(
        here.keys() | later.keys(),
        key=lambda m: _weigh_build(here.get(m), later.get(m)),
    ):
        mine, prods = here.get(model), later.get(model)
        one = mine or prods
        if one is None:
            continue
        rows.append(
            [
                sources.make_model_cell(model, "preview" if mine and mine.preview else ""),
                words.KINDS.get(one.kind, one.kind),
                _make_amount_cell(mine),
                mine.batches if mine else None,
                _make_amount_cell(prods) if plan else cells.make_value_cell("not planned", None),
                {
                    "axis": _list_moments(axis),
                    "held": held.get(model, []),
                    "pr": _make_lane(mine),
                    "prod": _make_lane(prods),
                    "left": _make_lane(left.get(model)),
                    "gaps": gaps.get(model, []),
                    "lost": lost.get(model, []),
                    "says": _describe_interval_strip(mine, prods, report),
                },
                _describe_row_after_merge(mine, left.get(model), prods),
                f"`{one.table}`",
            ]
        )
    return rows, axis


def _group_rows_by_model(ranges: Iterable[ModelRange]) -> dict[str, list[list[int | None]]]:
    found: dict[str, list[list[int | None]]] = {}
    for one in ranges:
        found.setdefault(one.model, []).append(_list_moments((one.start, one.end)))
    return found


def _weigh_build(here: Backfill | None, later: Backfill | None) -> tuple[bool, int, str]:
    one = later or here
    if one is None:
        return True, 0, ""
    most = max(item.intervals for item in (here, later) if item)
    return one.action == "recreate_view", -most, one.model


def _make_amount_cell(item: Backfill | None) -> list[str | float | None]:
    if item is None:
        return cells.make_value_cell("nothing", 0)
    if item.action == "recreate_view":
        return cells.make_value_cell("the view", 0)
    if item.action == "full_refresh":
        return cells.make_value_cell("the whole table", item.intervals)
    if item.action == "seed":
        return cells.make_value_cell("the seed file", item.intervals)
    window = cells.format_window_cell(item.start, item.end)
    return cells.make_value_cell(
        f"{words.format_count(item.intervals, 'interval')}, {window}", item.intervals
    )


def _make_lane(item: Backfill | None) -> list[Any] | None:
    return [item.action, *_list_moments((item.start, item.end))] if item else None


def _list_moments(span: Extent) -> list[int | None]:
    """Returns both ends as seconds since 1970."""
    return [None if end is None else int(words.parse_moment(end).timestamp()) for end in span]


def _cover_extents(spans: Iterable[Extent]) -> Extent:
    found = list(spans)
    starts = [start for start, _ in found if start]
    ends = [end for _, end in found if end]
    if not starts or not ends:
        return None, None
    return min(starts, key=words.parse_moment), max(ends, key=words.parse_moment)


def _describe_interval_strip(mine: Backfill | None, prods: Backfill | None, report: Report) -> str:
    """Describes what the strip shows, for readers who cannot see it."""
    later = f"; prod after the merge: {_make_amount_cell(prods)[0]}" if report.prod_plan else ""
    return f"{report.environment}: {_make_amount_cell(mine)[0]}{later}"


def _describe_row_after_merge(
    mine: Backfill | None, left: Backfill | None, prods: Backfill | None
) -> str:
    """Says what a table of the environment means for prod after the merge."""
    if mine is None:
        return "builds it" if prods else "–"
    if mine.preview:
        return "builds it again" if prods else "never reads it: a preview"
    if not mine.reused_in_prod:
        return "builds it again"
    more = left.intervals if left else 0
    return f"reuses it, builds {words.format_number(more)} more" if more else "reuses it"


def _make_prod_part(plan: ProdPlan, sources: HtmlReportSources) -> list[PageItem]:
    altered = [f"`{name}`" for name in plan.forward_only_schema_changes]
    return [
        *cells.make_prose_part(
            f"{SENTENCES.prod_plan_fails}: {plan.failure or 'SQLMesh says no more.'}"
            if plan.would_fail
            else None,
            f"{SENTENCES.altered_in_place}: {', '.join(altered)}." if altered else None,
        ),
        *cells.make_table_part(
            [("Model", "name"), ("Range", "text"), ("What", "text")],
            [
                *(
                    [
                        sources.make_model_cell(g.model),
                        cells.format_window_cell(g.start, g.end),
                        "lost: prod holds it, and the rebuilt table will not",
                    ]
                    for g in plan.lost
                ),
                *(
                    [
                        sources.make_model_cell(g.model),
                        cells.format_window_cell(g.start, g.end),
                        "a gap in the history of prod",
                    ]
                    for g in plan.gaps
                ),
            ],
            title="History that prod loses or lacks",
            key="gaps",
        ),
    ]


def _quote_statement(sql: str) -> str:
    """Quotes a statement as code; one that contains a backtick stays as it is."""
    return sql if "`" in sql else f"`{sql}`"


# The cost: expected before, and counted afterwards. An unknown cost is named, and never shown as 0.


def make_cost_section(report: Report | None, applied: ApplyDocument | None) -> list[PageItem]:
    """Makes a bar for each figure, all on one scale."""
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
    rows = [_make_bar_of_expected_cost(label, cost, most) for label, cost in estimates]
    if applied is not None:
        rows.append(_make_bar_of_actual_cost(applied, most))
    table = cells.make_table_part(
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
    return cells.make_section_part("cost", "Cost", table)


def _make_bar_of_expected_cost(label: str, cost: Cost, most: float) -> list[object]:
    mid, low, high = cost.executor_hours_mid, cost.executor_hours_low, cost.executor_hours_high
    price = "–" if cost.price is None else f"{words.format_money(cost.price)} at your rate"
    return [
        label,
        [
            cells.make_bar_cell(
                "", None if mid is None else mid / most, describe_cost_in_html(cost)
            ),
            *(
                [
                    cells.make_bar_cell(
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


def describe_cost_in_html(cost: Cost) -> str:
    """Returns "about 14 min", "at least 20 s; 3 of 4 tables unknown", "unknown", ..."""
    if cost.executor_hours_mid is None:
        return "unknown" if cost.tables or cost.intervals else "nothing to build"
    hours = words.executor_time(cost.executor_hours_mid)
    if cost.unknown:
        unknown = f"{len(cost.unknown):,} of {words.format_count(cost.tables, 'table')} unknown"
        return f"at least {hours}; {unknown}"
    return f"about {hours}"


def _make_bar_of_actual_cost(applied: ApplyDocument, most: float) -> list[object]:
    hours = applied.executor_hours
    text = "not measured" if hours is None else words.executor_time(hours)
    return [
        f"Took in `{applied.environment}`",
        [cells.make_bar_cell("", None if hours is None else hours / most, text, "accent")],
        sum(model.intervals > 0 and model.action != "recreate_view" for model in applied.models),
        sum(m.intervals for m in applied.models if m.action != "recreate_view"),
        "–",
        f"The whole apply took {words.duration(applied.seconds)}.",
    ]
