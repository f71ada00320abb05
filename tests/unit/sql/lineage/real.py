"""Real SQLMesh models on both sides of a change, and their impact."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlmesh.core.model import Model, create_python_model
from sqlmesh.core.model.kind import ModelKindName
from sqlmesh.utils.metaprogramming import Executable

from ci_bot.protocol.plan import ChangeType
from ci_bot.protocol.review_report import Impact, IndirectModel
from ci_bot.worker.messages.names import MessageNames
from ci_bot.worker.review.lineage_inputs import ReviewedModels, read_changed_project
from ci_bot.worker.sql.lineage.document import make_impact
from tests.unit.rules.world import models

NAMES = MessageNames("spark_catalog", "spark")
ORDERS = """
    MODEL (name stg.orders, kind FULL);
    SELECT order_id, customer_id, status, amount, CAST(order_ts AS DATE) AS day FROM raw.orders
"""


def model(name: str, query: str, kind: str = "FULL") -> str:
    return f"MODEL (name {name}, kind {kind});\n{query}"


def kinds_of(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, ChangeType]:
    """How SQLMesh calls the changes: edited models, and all below them."""
    kinds: dict[str, ChangeType] = {}
    for name, found in new.items():
        if name not in old:
            kinds[name] = "added"
        elif old[name].data_hash != found.data_hash:
            kinds[name] = "direct"
    below = set(kinds) | (set(old) - set(new))
    while True:
        more = {n for n, m in new.items() if n not in below and m.depends_on & below}
        if not more:
            return kinds
        below |= more
        kinds |= dict.fromkeys(more, "indirect")


def impact(
    before: Mapping[str, str],
    after: Mapping[str, str] | None = None,
    python: Mapping[str, tuple[str, ...]] | None = None,
    same_result: Collection[str] = (),
) -> Impact:
    """The impact of `after`, whose files stand in for those of the same name of `before`.

    Args:
        python: Python models, with what they depend on.
        same_result: Models whose edit is proved to change no result.
    """
    old = models(before, stored=True)
    new = models({**before, **(after or {})})
    for name, parents in (python or {}).items():
        made = python_model(name, parents)
        old[made.fqn] = new[made.fqn] = made
    changed = ReviewedModels(
        after=new,
        before={name: old[name] for name, kind in kinds_of(old, new).items() if kind == "direct"},
        kinds=kinds_of(old, new),
        removed=[name for name in old if name not in new],
        same_result=frozenset(same_result),
    )
    return make_impact(read_changed_project(changed, NAMES))


def python_model(name: str, parents: tuple[str, ...]) -> Model:
    return create_python_model(
        name,
        "execute",
        {"execute": Executable(payload="def execute(context, **kwargs):\n    ...")},
        kind={"name": ModelKindName.FULL},
        columns={"x": "BIGINT"},
        depends_on=list(parents),
        dialect="spark",
        default_catalog="spark_catalog",
    )


def parts(found: Impact) -> dict[tuple[str, str | None], str]:
    return {(part.model, part.column): part.how for part in found.changed}


def reached(found: Impact, model: str, column: str | None) -> dict[str, tuple[set[str], bool]]:
    """What one changed part reaches: per model its columns, and whether its rows."""
    part = next(p for p in found.changed if (p.model, p.column) == (model, column))
    return {entry.model: (set(entry.columns), entry.rows) for entry in part.reached}


def indirect(found: Impact) -> dict[str, IndirectModel]:
    return {entry.model: entry for entry in found.indirect}


CHAIN = {
    "a.sql": ORDERS,
    "b.sql": model(
        "mart.daily", "SELECT day, SUM(amount) AS total, COUNT(*) AS n FROM stg.orders GROUP BY day"
    ),
    "c.sql": model("mart.names", "SELECT order_id, status FROM stg.orders"),
    "d.sql": model("mart.paid", "SELECT order_id FROM stg.orders WHERE status = 'paid'"),
    "e.sql": model("mart.top", "SELECT day FROM mart.daily WHERE total > 100"),
}
