"""Every statement that SQLMesh makes of a model, an audit or the project, as the engine gets it.

The places were found by reading SQLMesh's evaluator and scheduler. Python code that speaks with the
engine by itself (Python models, custom materializations, signals, macros with the engine's adapter)
makes statements that nobody can see before they run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from sqlglot import exp
from sqlmesh.core.audit.builtin import BUILT_IN_AUDITS
from sqlmesh.core.macros import RuntimeStage

from ci_bot.worker import compat
from ci_bot.worker.statements.code import RUNS_JAVA
from ci_bot.worker.statements.effects import shown
from ci_bot.worker.statements.judging import PLACEHOLDER, Statement
from ci_bot.worker.statements.lexical import SPARK
from ci_bot.worker.statements.reading import quiet
from ci_bot.worker.statements.sites import Site

# The attribute with a slot's statements, the method that renders them, and when they run.
_AROUND_QUERY = (
    ("pre-statement", "pre_statements_", "render_pre_statements"),
    ("post-statement", "post_statements_", "render_post_statements"),
)
_SLOTS = ("pre_statements_", "post_statements_", "on_virtual_update_")
_BUILDING = (RuntimeStage.CREATING, RuntimeStage.EVALUATING)
# What composes names out of pieces; SQLMesh's other macros only move what stands there literally.
_COMPOSES = re.compile(r"\w@|@\W|@\w+@|@(?:SQL|EVAL|RESOLVE_TEMPLATE)\b", re.IGNORECASE)
_JINJA = re.compile(r"\{\{|\{%|JINJA_", re.IGNORECASE)
_STAGE = re.compile(r"runtime_stage", re.IGNORECASE)
_MAY_RUN_CODE = re.compile(
    "|".join(sorted(RUNS_JAVA)) + r"|transform\b.*\busing\b|\$\{",
    re.IGNORECASE | re.DOTALL,
)


def of_model(model: Any, site: Site) -> Iterator[Statement]:
    """The statements around a model's query and on its virtual update, each text once."""
    place = _Place(model.fqn, site.dialect_of(model), _code_of(model))
    for slot, attribute, method in _AROUND_QUERY:
        items = getattr(model, attribute, None) or ()
        around = {getattr(item, "transaction", None) is not False for item in items}
        source = _source(items)
        renders = [
            partial(getattr(model, method), runtime_stage=stage, inside_transaction=inside)
            for stage in _stages(model, source)
            for inside in sorted(around, reverse=True)
        ]
        context = partial(site.evaluation, model.fqn)
        yield from place.rendered(slot, source, _led(model, source, context, renders))
    source = _source(getattr(model, "on_virtual_update_", None))
    if source:
        render = partial(model.render_on_virtual_update, runtime_stage=RuntimeStage.PROMOTING)
        context = partial(site.promotion, model.fqn)
        led = _led(model, source, context, [render])
        yield from place.rendered("on-virtual-update", source, led)


def _led(
    node: Any,
    source: str,
    context: Callable[..., dict[str, Any]],
    renders: Iterable[Callable[..., Any]],
) -> Iterator[Callable[[], Any]]:
    """Rendering with the names of models led to tables: only those that the statements name.

    To lead the names of a thousand models takes SQLMesh a second for each statement. Where code of
    the project takes part it gets all of them, because it may ask for any.
    """
    alone = _calls_nothing(node, source)
    for render in renders:
        if alone:
            yield partial(_named_only, context, render)
        else:
            yield partial(_with_all, context, render)


def _with_all(context: Callable[..., dict[str, Any]], render: Callable[..., Any]) -> Any:
    return render(**context())


def _named_only(context: Callable[..., dict[str, Any]], render: Callable[..., Any]) -> Any:
    first = render(**context(()))
    tables = {
        exp.table_name(table, identify=True) for tree in first for table in tree.find_all(exp.Table)
    }
    led = context(tables)
    return render(**led) if len(led.get("snapshots", ())) > 1 else first


def _calls_nothing(node: Any, source: str) -> bool:
    """Whether no code of the project takes part in rendering, beyond SQLMesh's own macros."""
    code = any(not item.is_value for item in node.python_env.values())
    return not code and not _JINJA.search(source)


def inside_model(model: Any, site: Site) -> Iterator[Statement]:
    """What becomes a part of SQLMesh's own statements: query, audits, merges, table properties."""
    place = _Place(model.fqn, site.dialect_of(model), _code_of(model))
    yield from _query(model, site, place)
    for audit, arguments in model.audits_with_args:
        yield from _audit(model, audit, arguments, site, place)
    yield from _merge(model, place)
    if place.dialect in SPARK:
        yield from _clauses(model, site, place)


def of_standalone(audit: Any, site: Site) -> Iterator[Statement]:
    """The query of an audit that is a node by itself."""
    place = _Place(audit.name, site.default_dialect, _code_of(audit))
    if _may_run_code(audit.query_.sql, audit):
        kwargs = {**site.evaluation(audit.name), "runtime_stage": RuntimeStage.AUDITING}
        render = partial(audit.render_audit_query, **kwargs)
        yield from place.rendered("audit", audit.query_.sql, [render], part=True)


def around_plan(item: Any, site: Site) -> Iterator[Statement]:
    """The before_all and after_all statements of one project (`EnvironmentStatements`)."""
    place = _Place(None, site.default_dialect, _code_of(item))
    for stage in (RuntimeStage.BEFORE_ALL, RuntimeStage.AFTER_ALL):
        for source in getattr(item, stage.value):
            alone = item.model_copy(update={stage.value: [source]})
            render = partial(
                alone.render, stage, place.dialect, site.catalog or None, **site.around()
            )
            yield from place.rendered(stage.value, source, [render])


class _Place:
    """Where statements stand: what they have in common."""

    def __init__(self, model: str | None, dialect: str, code: str) -> None:
        self.model = model
        self.dialect = dialect
        self._code = code

    def rendered(
        self,
        slot: str,
        source: str,
        renders: Iterable[Callable[[], Any]],
        *,
        part: bool = False,
    ) -> Iterator[Statement]:
        """The statements of a slot, each text once; without a text where it does not render.

        Args:
            renders: give text or trees, one or a list.
        """
        texts: dict[str | None, str] = {}
        for render in renders:
            try:
                with quiet("sqlmesh.core.renderer"):
                    given = render()
                for tree in given if isinstance(given, list) else [given]:
                    texts.setdefault(self._text(tree), "")
            except Exception as error:  # the project's own macros run in here
                texts.setdefault(None, type(error).__name__)
        for text, problem in texts.items():
            yield Statement(
                slot,
                self.model,
                source if text is not None else f"{source}\n{self._code}",
                text,
                self.dialect,
                problem=f"it does not render without the engine: {problem}" if problem else "",
                part=part,
            )

    def _text(self, tree: Any) -> str:
        return tree if isinstance(tree, str) else compat.executed_text(tree, self.dialect)


def _query(model: Any, site: Site, place: _Place) -> Iterator[Statement]:
    query = getattr(model, "query_", None)
    if query is None or not _may_run_code(query.sql, model):
        return

    others = () if _calls_nothing(model, query.sql) else None
    evaluation = {**site.evaluation(model.fqn, others), "needs_optimization": False}
    renders = [
        partial(model.render_query_or_raise, **evaluation, runtime_stage=stage)
        for stage in _stages(model, query.sql)
    ]
    yield from place.rendered("query", query.sql, renders, part=True)


def _audit(
    model: Any, audit: Any, arguments: dict[str, Any], site: Site, place: _Place
) -> Iterator[Statement]:
    given = " ".join(str(value) for value in arguments.values())
    own = "" if audit.name in BUILT_IN_AUDITS else audit.query_.sql
    if not _may_run_code(f"{own} {given}", model):
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


def _merge(model: Any, place: _Place) -> Iterator[Statement]:
    """Conditions and assignments of a MERGE that SQLMesh makes, as queries of their own."""
    for name in ("merge_filter", "when_matched", "unique_key"):
        given = getattr(model, name, None)
        trees = given if isinstance(given, list) else [given] if given is not None else []
        for part in (part for tree in trees for part in _expressions(tree)):
            text = part.sql(dialect=place.dialect)
            if _may_run_code(text, model):
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


def _clauses(model: Any, site: Site, place: _Place) -> Iterator[Statement]:
    """Format and properties of the table, and properties of the view, as CREATE has them."""
    evaluation = {**site.evaluation(model.fqn, ()), "runtime_stage": RuntimeStage.CREATING}
    for slot, method in (
        ("table properties", "render_physical_properties"),
        ("view properties", "render_virtual_properties"),
    ):
        render = partial(_created, model, partial(getattr(model, method), **evaluation), place)
        yield from place.rendered(slot, slot, [render], part=True)


def _created(model: Any, properties: Callable[[], Any], place: _Place) -> str:
    clauses = compat.table_clauses(model, properties(), place.dialect)
    return f"CREATE TABLE {shown(PLACEHOLDER)} (a INT) {clauses}"


def _may_run_code(sql: str, node: Any) -> bool:
    """Whether a query must be rendered to know; most say by their text alone that they do not.

    The values of variables, and the definitions beside a query, are what its variables put in.
    """
    values = [item.payload for item in node.python_env.values() if item.is_value]
    for attribute in _SLOTS:
        values.append(_source(getattr(node, attribute, None)))
    whole = " ".join((sql, *values))
    if _COMPOSES.search(sql) or not _calls_nothing(node, sql):
        return True
    return bool(_MAY_RUN_CODE.search(whole))


def _stages(node: Any, source: str) -> tuple[RuntimeStage, ...]:
    """The stages to render for: both where the text, or code that takes part, may ask for it."""
    asks = _STAGE.search(source) or not _calls_nothing(node, source)
    return _BUILDING if asks else _BUILDING[-1:]


def _source(items: Any) -> str:
    return ";\n".join(item.sql for item in items or ())


def _code_of(node: Any) -> str:
    """What stands for the code that a node's macros run."""
    macros = getattr(node, "jinja_macros", None)
    code = [(name, item.payload) for name, item in sorted((node.python_env or {}).items())]
    jinja = list(macros.data_hash_values) if macros is not None else []
    return hashlib.sha256(repr((code, jinja)).encode()).hexdigest()
