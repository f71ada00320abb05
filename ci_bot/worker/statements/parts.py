"""What of a project becomes a part of SQLMesh's own statements: queries, audits, conditions of
merges, and the properties of tables. A program, or a location, can stand there too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from sqlmesh.core.audit.builtin import BUILT_IN_AUDITS
from sqlmesh.core.macros import RuntimeStage

from ci_bot.worker import compat
from ci_bot.worker.statements.code import RUNS_JAVA
from ci_bot.worker.statements.effects import display_name
from ci_bot.worker.statements.judging import PLACEHOLDER, Statement
from ci_bot.worker.statements.place import Place, calls_nothing, code_of, stages_of
from ci_bot.worker.statements.sites import Site
from ci_bot.worker.statements.text.lexical import SPARK

_SLOTS = ("pre_statements_", "post_statements_", "on_virtual_update_")
# What composes names out of pieces; SQLMesh's other macros only move what stands there literally.
_COMPOSES = re.compile(r"\w@|@\W|@\w+@|@(?:SQL|EVAL|RESOLVE_TEMPLATE)\b", re.IGNORECASE)
_MAY_RUN_CODE = re.compile(
    "|".join(sorted(RUNS_JAVA)) + r"|transform\b.*\busing\b|\$\{",
    re.IGNORECASE | re.DOTALL,
)


def inside_model(model: Any, site: Site) -> Iterator[Statement]:
    """What becomes a part of SQLMesh's own statements: query, audits, merges, table properties."""
    place = Place(model.fqn, site.dialect_of(model), code_of(model))
    yield from _query(model, site, place)
    for audit, arguments in model.audits_with_args:
        yield from _audit(model, audit, arguments, site, place)
    yield from _merge(model, place)
    if place.dialect in SPARK:
        yield from _clauses(model, site, place)


def of_standalone(audit: Any, site: Site) -> Iterator[Statement]:
    """The query of an audit that is a node by itself."""
    place = Place(audit.name, site.default_dialect, code_of(audit))
    if may_run_code(audit.query_.sql, audit):
        kwargs = {**site.evaluation(audit.name), "runtime_stage": RuntimeStage.AUDITING}
        render = partial(audit.render_audit_query, **kwargs)
        yield from place.rendered("audit", audit.query_.sql, [render], part=True)


def _query(model: Any, site: Site, place: Place) -> Iterator[Statement]:
    query = getattr(model, "query_", None)
    if query is None or not may_run_code(query.sql, model):
        return

    others = () if calls_nothing(model, query.sql) else None
    evaluation = {**site.evaluation(model.fqn, others), "needs_optimization": False}
    renders = [
        partial(model.render_query_or_raise, **evaluation, runtime_stage=stage)
        for stage in stages_of(model, query.sql)
    ]
    yield from place.rendered("query", query.sql, renders, part=True)
    yield from place.hidden("query", model.dialect, model.query, part=True)


def _audit(
    model: Any, audit: Any, arguments: dict[str, Any], site: Site, place: Place
) -> Iterator[Statement]:
    given = " ".join(str(value) for value in arguments.values())
    own = "" if audit.name in BUILT_IN_AUDITS else audit.query_.sql
    if not may_run_code(f"{own} {given}", model):
        return
    kwargs = {
        **site.evaluation(model.fqn),
        "runtime_stage": RuntimeStage.AUDITING,
        **{name: value for name, value in arguments.items() if name != "blocking"},
    }
    render = partial(model.render_audit_query, audit, **kwargs)
    yield from place.rendered(
        f"audit {audit.name}", f"{audit.query_.sql} {given}", [render], part=True
    )


def _merge(model: Any, place: Place) -> Iterator[Statement]:
    """Conditions and assignments of a MERGE that SQLMesh makes, as queries of their own."""
    for name in ("merge_filter", "when_matched", "unique_key"):
        given = getattr(model, name, None)
        trees = given if isinstance(given, list) else [given] if given is not None else []
        for part in (part for tree in trees for part in _expressions(tree)):
            text = part.sql(dialect=place.dialect)
            if may_run_code(text, model):
                yield from place.rendered("merge", text, [partial(_alone, text)], part=True)


def _alone(expression: str) -> str:
    if "@" in expression:
        raise ValueError("a macro")
    return f"SELECT {expression}"


def _expressions(tree: Any) -> Iterator[Any]:
    if tree.key != "whens":
        yield tree
        return
    for when in tree.expressions:
        for part in (when.args.get("condition"), *_assigned(when.args.get("then"))):
            if part is not None:
                yield part


def _assigned(then: Any) -> Iterator[Any]:
    for part in (then.args.get("expression"), *then.expressions) if then is not None else ():
        if part is not None:
            yield part


def _clauses(model: Any, site: Site, place: Place) -> Iterator[Statement]:
    """Format and properties of the table, and properties of the view, as CREATE has them."""
    evaluation = {**site.evaluation(model.fqn, ()), "runtime_stage": RuntimeStage.CREATING}
    for slot, method in (
        ("table properties", "render_physical_properties"),
        ("view properties", "render_virtual_properties"),
    ):
        render = partial(_created, model, partial(getattr(model, method), **evaluation), place)
        yield from place.rendered(slot, slot, [render], part=True)


def _created(model: Any, properties: Callable[[], Any], place: Place) -> str:
    clauses = compat.table_clauses(model, properties(), place.dialect)
    return f"CREATE TABLE {display_name(PLACEHOLDER)} (a INT) {clauses}"


def may_run_code(sql: str, node: Any) -> bool:
    """Whether a query must be rendered to know; most say by their text alone that they do not.

    The values of variables, and the definitions beside a query, are what its variables put in.
    """
    values = [item.payload for item in node.python_env.values() if item.is_value]
    for attribute in _SLOTS:
        values += [item.sql for item in getattr(node, attribute, None) or ()]
    whole = " ".join((sql, *values))
    if _COMPOSES.search(sql) or not calls_nothing(node, sql):
        return True
    return bool(_MAY_RUN_CODE.search(whole))
