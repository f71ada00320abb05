"""Models made from text, on both sides of a change, without a context and without an engine."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sqlglot.schema import MappingSchema
from sqlmesh.core import dialect as d
from sqlmesh.core.audit import ModelAudit, load_audit
from sqlmesh.core.model import SqlModel, create_external_model, load_sql_based_model
from sqlmesh.core.signal import signal

from ci_bot.protocol.plan import Finding
from ci_bot.protocol.rules import RULES
from ci_bot.worker.messages.names import MessageNames
from ci_bot.worker.rules import RuleInputs
from ci_bot.worker.rules.run_rules import list_file_observations, list_observations, place_findings

ROOT = Path("/repository")


@signal()
def arrived(batch: Any, source: str = "") -> bool:
    """A signal that the models of these tests may wait for."""
    return True


SIGNALS = {"arrived": signal.get_registry()["arrived"]}
EXTERNAL: Mapping[str, Mapping[str, str]] = {
    "raw.orders": {
        "order_id": "BIGINT",
        "customer_id": "BIGINT",
        "status": "STRING",
        "amount": "DECIMAL(10, 2)",
        "order_ts": "TIMESTAMP",
        "loaded_at": "TIMESTAMP",
    },
    "raw.customers": {
        "customer_id": "BIGINT",
        "email": "STRING",
        "country": "STRING",
        "updated_at": "TIMESTAMP",
    },
}


def models(
    files: Mapping[str, str],
    *,
    external: Mapping[str, Mapping[str, str]] = EXTERNAL,
    audits: str = "",
    defaults: Mapping[str, Any] | None = None,
    stored: bool = False,
    macros: Any = None,
) -> dict[str, Any]:
    """Models by fully qualified name, with the schemas of their parents worked out.

    Args:
        files: path to the text of a model.
        audits: AUDIT definitions that all models may use.
        stored: as they come back from a state: written to JSON and read again.
        macros: the registry of the macros that the models may call, defined below `ROOT`.
    """
    known_audits = {a.name: a for a in _audits(audits)}
    made: dict[str, Any] = {}
    for path, text in files.items():
        model = load_sql_based_model(
            d.parse(textwrap.dedent(text), default_dialect="spark"),
            defaults={"dialect": "spark", "start": "2023-01-01", **(defaults or {})},
            dialect="spark",
            default_catalog="spark_catalog",
            path=ROOT / path,
            audit_definitions=known_audits,
            signal_definitions=SIGNALS,
            macros=macros,
            module_path=ROOT,
        )
        made[model.fqn] = model
    for name, columns in external.items():
        model = create_external_model(
            name, columns=columns, dialect="spark", default_catalog="spark_catalog"
        )
        made[model.fqn] = model
    if stored:
        made = {
            name: SqlModel.parse_raw(model.json()) if isinstance(model, SqlModel) else model
            for name, model in made.items()
        }
    _connect(made)
    return made


def _audits(text: str) -> Iterable[ModelAudit]:
    expressions = d.parse(textwrap.dedent(text), default_dialect="spark") if text else []
    for start in range(0, len(expressions), 2):
        audit = load_audit(
            expressions[start : start + 2], path=ROOT / "audits/own.sql", dialect="spark"
        )
        if isinstance(audit, ModelAudit):
            yield audit


def _connect(made: Mapping[str, Any]) -> None:
    """Gives each model the columns of what it reads, parents first."""
    schema = MappingSchema(normalize=False)
    done: set[str] = set()

    def visit(name: str) -> None:
        if name in done or name not in made:
            return
        done.add(name)
        for parent in sorted(made[name].depends_on):
            visit(parent)
        made[name].update_schema(schema)
        columns = made[name].columns_to_types
        if columns and "*" not in columns:
            schema.add_table(name, dict(columns), dialect="spark")

    for name in sorted(made):
        visit(name)


def change(
    before: Mapping[str, str],
    after: Mapping[str, str],
    *,
    external: Mapping[str, Mapping[str, str]] = EXTERNAL,
    audits_before: str = "",
    audits_after: str = "",
    other_before: Mapping[str, str | bytes] | None = None,
    other_after: Mapping[str, str | bytes] | None = None,
    defaults: Mapping[str, Any] | None = None,
    **more: Any,
) -> RuleInputs:
    """A change of models (by path and text) and of other files, as the rules are given it."""
    old_files = {**{p: textwrap.dedent(t) for p, t in before.items()}, **(other_before or {})}
    new_files = {**{p: textwrap.dedent(t) for p, t in after.items()}, **(other_after or {})}
    changed = sorted(
        p for p in old_files.keys() | new_files.keys() if old_files.get(p) != new_files.get(p)
    )
    new = models(after, external=external, audits=audits_after, defaults=defaults)
    readers: dict[str, set[str]] = {}
    for name, model in new.items():
        for parent in model.depends_on:
            readers.setdefault(parent, set()).add(name)
    return RuleInputs(
        before=models(
            before, external=external, audits=audits_before, defaults=defaults, stored=True
        ),
        after=new,
        repository=ROOT,
        changed_files=tuple(changed),
        files_before=lambda path: _bytes(old_files.get(path)),
        files_after=lambda path: _bytes(new_files.get(path)),
        readers=readers,
        default_dialect="spark",
        names=MessageNames("spark_catalog", "spark"),
        **more,
    )


def files(
    before: Mapping[str, str | bytes | None], after: Mapping[str, str | bytes | None], **more: Any
) -> RuleInputs:
    """A change of files alone."""
    changed = sorted(p for p in before.keys() | after.keys() if before.get(p) != after.get(p))
    return RuleInputs(
        before={},
        after={},
        repository=ROOT,
        changed_files=tuple(changed),
        files_before=lambda path: _bytes(before.get(path)),
        files_after=lambda path: _bytes(after.get(path)),
        default_dialect="spark",
        **more,
    )


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def seen(inputs: RuleInputs, rule: str | None = None) -> list[Finding]:
    """The findings, of one rule or of all.

    A crashed rule fails the test. So does a severity that the rule's page does not name, and one
    identity for two things: a report would tell only one of them.
    """
    found: list[Finding] = []
    for seen_by in (list_observations, list_file_observations):
        observations = list(seen_by(inputs))
        sentences: dict[object, set[str]] = {}
        for one in observations:
            about = (one.spec.id, getattr(one.model, "fqn", one.model_name), one.path, one.subject)
            sentences.setdefault(about, set()).add(one.described_text)
        mixed = {about: told for about, told in sentences.items() if len(told) > 1}
        if mixed:
            raise AssertionError(mixed)
        found += place_findings(observations, inputs)
    crashed = [item for item in found if item.rule == "rule-crashed"]
    if crashed:
        raise AssertionError(crashed)
    unnamed = [item for item in found if item.severity not in RULES[item.rule].severities]
    if unnamed:
        raise AssertionError(unnamed)
    # Statements name objects of the warehouse, with their catalogs; models are called one way.
    full = [
        item
        for item in found
        if RULES[item.rule].scope != "statement"
        and re.search(r"spark_catalog[\"`]?\.", f"{item.model} {item.subject} {item.evidence}")
    ]
    if full:
        raise AssertionError(full)
    return [item for item in found if rule is None or item.rule == rule]


def rules(inputs: RuleInputs, at_least: str = "info") -> dict[str, str]:
    """Rule ids with the heaviest severity that each was seen with."""
    order = ("info", "low", "medium", "high", "blocker")
    found: dict[str, str] = {}
    for item in seen(inputs):
        if order.index(item.severity) >= order.index(at_least):
            old = found.get(item.rule, "info")
            found[item.rule] = max(old, item.severity, key=order.index)
    return found


def list_severities_of_new_model(
    rule: str,
    text: str,
    *,
    stays: Mapping[str, str],
    external: Mapping[str, Mapping[str, str]],
    name: str = "mart.new",
    kind: str = "FULL",
    more: str = "",
) -> list[str]:
    """The severities of one rule's findings for a new model.

    Args:
        stays: The files of models that are on both sides.
        more: The properties of the model behind its kind, each behind a comma.
    """
    model = f"MODEL (name {name}, kind {kind}{more}); {text}"
    inputs = change(stays, {**stays, "models/new.sql": model}, external=external)
    return [item.severity for item in seen(inputs, rule) if item.model == name]
