"""Reports for the page: as large as a project can be, and as hostile as a pull request can be."""

from __future__ import annotations

import random

from ci_bot.protocol.plan import ColumnChange, Cost, Lineage, LineageNode, ProdPlan
from ci_bot.protocol.review_report import ChangedPart, Impact, ModelOwners, ReachedModel, Report
from tests.factories import make_backfill, make_change, make_report, make_risk
from tests.reports import full_report

# The goldens that are drawn.
REPORTS = (
    "small_change",
    "destructive_change",
    "wide_change",
    "failed_plan",
    "base_broken",
    "no_changes",
)
_LAYERS = ("raw", "staging", "core", "marts", "exports")
_KINDS = ("direct", "indirect", "indirect", "indirect", "metadata")


def name(number: int, models: int) -> str:
    """What the model of this number is called in a large project."""
    return f"{_LAYERS[number * len(_LAYERS) // models]}.model_{number:04}_of_sales"


def large(models: int, changed: int) -> Report:
    """A project of five layers in which `changed` of `models` change, each with a diff of a page.

    Always the same. All of its models are in the lineage.
    """
    chance = random.Random(7)
    names = [name(number, models) for number in range(models)]
    edges = [
        (names[max(0, number - 1 - chance.randrange(models // 5))], names[number])
        for number in range(models // 20, models)
        for _ in range(chance.randrange(1, 3))
    ]
    numbers = range(models - changed, models)
    changes = [
        make_change(
            names[number],
            change=_KINDS[number % len(_KINDS)],
            owner=f"team-{number % 9}",
            diff=_diff(number),
            columns=[ColumnChange(name=f"amount_{number}", before=None, after="DECIMAL(18, 2)")],
        )
        for number in numbers
    ]
    change_of = {change.model: change.change for change in changes}
    backfill = [make_backfill(names[number], intervals=1 + number) for number in numbers]
    risks = [make_risk("R06-breaking-rebuild", model=names[number]) for number in numbers]
    return make_report(
        changes=changes,
        backfill=backfill,
        work=backfill,
        prod_plan=ProdPlan(
            changes=changed, backfill=backfill[::3], full_backfill=backfill, would_fail=False
        ),
        risks=risks,
        lineage=Lineage(
            nodes=[LineageNode(model=model, change=change_of.get(model)) for model in names],
            edges=sorted(set(edges)),
        ),
    )


def _diff(number: int) -> str:
    same = "\n".join(f"   o.column_{row} AS column_{row}," for row in range(12))
    return (
        f"@@ -1,14 +1,14 @@\n{same}\n-  SUM(o.amount) AS amount_{number},\n"
        f"+  SUM(o.amount * 1.{number}) AS amount_{number},\n FROM core.orders AS o"
    )


# Each would set `ran` in a page that takes it for markup, a script or an address.
ATTACKS = (
    "</script><script>ran=1</script>",
    "--></script></style><img src=x onerror=ran=1>",
    "<svg onload=ran=1></svg>",
    'x" onmouseover="ran=1" autofocus onfocus="ran=1',
    "javascript:ran=1//",
    "`<iframe srcdoc='<script>parent.ran=1</script>'></iframe>`",
    "{{ 7 * 7 }}${ran=1}\u2028ran=1\u202egnihton",
)


def hostile(attack: str) -> Report:
    """A report with the same text in every place that a project or a person can fill."""
    model = f"mart.{attack}"
    risk = make_risk(
        attack, model=model, path=attack, evidence=attack, clears_when=attack, severity="blocker"
    )
    change = make_change(
        model,
        kind=attack,
        path=attack,
        owner=attack,
        tags=[attack],
        diff=f"@@ -1,1 +1,1 @@\n-{attack}\n+{attack} x",
        columns=[ColumnChange(name=attack, before=attack, after=None, readers=[attack])],
        also_in=[attack],
    )
    backfill = make_backfill(model, kind=attack, table=attack)
    whole = full_report()
    return whole.model_copy(
        update={
            "environment": attack,
            "reasons": [attack],
            "changes": [change, *whole.changes],
            "backfill": [backfill, *whole.backfill],
            "risks": [risk, *whole.risks],
            "set_aside": [risk],
            "owners": [ModelOwners(model=model, logins=[attack], teams=[], place=attack)],
            "not_appliable_because": attack,
            "cost": Cost(
                intervals=1, batches=1, tables_rebuilt=0, tables=1, unknown=[attack], basis=attack
            ),
            "lineage": Lineage(
                nodes=[
                    LineageNode(model=model, change="direct"),
                    LineageNode(model=attack, change=None),
                ],
                edges=[(attack, model)],
            ),
            "impact": Impact(
                changed=[
                    ChangedPart(
                        model=model,
                        column=attack,
                        how="computed",
                        why=attack,
                        reached=[ReachedModel(model=attack, columns=[attack], rows=False)],
                    )
                ]
            ),
            "notes": [attack],
            "environment_now": attack,
        }
    )
