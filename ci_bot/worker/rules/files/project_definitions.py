"""Other definitions of a project, beside its queries.

They are statements around plans and runs, standalone audits, metrics, and the names of models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from sqlmesh.core import dialect as d
from sqlmesh.core.audit.builtin import BUILT_IN_AUDITS

from ci_bot.protocol.files import is_file_read_by_a_rule
from ci_bot.protocol.rules import READ_NO_MORE, find_rule, quote_names
from ci_bot.redaction import redact_shapes, shorten_redacted
from ci_bot.worker.rules.changes.protection import OWNER_AGREES
from ci_bot.worker.rules.changes.protection import REMOVED as AUDIT_REMOVED
from ci_bot.worker.rules.changes.protection import WEAKENED as AUDIT_WEAKENED
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import list_gone_models, list_renamed_models
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line
from ci_bot.worker.rules.registry import on_file, on_project
from ci_bot.worker.rules.statement_rules import find_statement_place
from ci_bot.worker.runtime import silence_worker_log
from ci_bot.worker.sql import compare_audit_queries, plain_name

if TYPE_CHECKING:
    from sqlglot import exp

ADDED = find_rule("environment-statement")
STILL_READ = find_rule("removed-model-read")
RENAMED = find_rule("model-renamed")
LONGEST = 3_999  # the plan's description cuts longer statements

_AUDIT = re.compile(r"^[^\S\n]*AUDIT\s*\(", re.IGNORECASE | re.MULTILINE)
_HEAD_ENDS = re.compile(r"\)\s*;")
_NAME = re.compile(r"\bname\s+([\w.\"`]+)", re.IGNORECASE)


@on_project(ADDED)
def find_added_statements(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds changed statements in before_all and after_all.

    They run with every plan and run, also in PR environments.
    """
    judged = {
        (item.statement.slot, item.statement.source[:LONGEST])
        for item in inputs.judged or ()
        if not item.in_prod
    }
    for when, sql, change in inputs.statements:
        if change == "unchanged" or (change == "added" and (when, sql[:LONGEST]) in judged):
            continue
        path, line = find_statement_place(inputs, sql)
        shown = shorten_redacted(redact_shapes(sql), 200)
        yield RuleObservation(
            ADDED,
            f"{'New in' if change == 'added' else 'Gone from'} {when}: {shown}",
            "a reviewer agrees that it runs with every plan and every run",
            # After each deployment they do what prod's readers need, such as grants.
            severity="high" if (when, change) == ("after_all", "removed") else None,
            path=path,
            line=line,
            subject=(when, shown),
        )


@on_file(AUDIT_REMOVED, AUDIT_WEAKENED)
def find_standalone_audit_changes(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds changed audits that belong to no model; SQLMesh runs them alone."""
    for path in inputs.changed_files or ():
        if PurePosixPath(path).suffix.lower() != ".sql":
            continue
        before = _list_audit_heads(inputs.read_text_before(path))
        after = _list_audit_heads(inputs.read_text_after(path))
        for name, head in before.items():
            if not re.search(r"\bstandalone\s+true\b", head, re.IGNORECASE):
                continue
            new = after.get(name)
            if new is None:
                yield RuleObservation(
                    AUDIT_REMOVED,
                    f"The standalone audit `{name}` is gone.",
                    "the audit is back, or its owner agrees that it may go",
                    path=path,
                    line=1,
                    subject=(name,),
                )
            elif _is_audit_skipped(new) and not _is_audit_skipped(head):
                yield RuleObservation(
                    AUDIT_WEAKENED,
                    f"The standalone audit `{name}` is skipped from now on.",
                    "the audit runs again",
                    path=path,
                    line=find_anchor_line(inputs.read_text_after(path) or "", ("skip",)),
                    subject=(name,),
                )


@on_file(AUDIT_WEAKENED)
def find_other_defaults_in_audit_file(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds audits with other defaults.

    No hash of SQLMesh contains the defaults, so the plan shows no change.
    (`Model._audit_metadata_hash_values`)
    """
    for path in inputs.changed_files or ():
        if PurePosixPath(path).suffix.lower() != ".sql":
            continue
        before = _list_bound_queries(inputs.read_text_before(path))
        after = _list_bound_queries(inputs.read_text_after(path))
        for name in before.keys() & after.keys():
            (old_defaults, old), (new_defaults, new) = before[name], after[name]
            if old_defaults == new_defaults:
                continue
            if compare_audit_queries(old, new, inputs.default_dialect) == "stricter":
                continue
            yield RuleObservation(
                AUDIT_WEAKENED,
                f"The audit `{name}` checks by other defaults: `{new_defaults}` in place of "
                f"`{old_defaults}`. SQLMesh takes that for no change of the models: it holds in "
                "prod for each once the model itself changes.",
                OWNER_AGREES,
                path=path,
                line=find_anchor_line(inputs.read_text_after(path) or "", ("defaults",)),
                subject=(name, "defaults"),
            )


class _AuditBlock(NamedTuple):
    """`AUDIT (head);` in a text: where it begins, its content, and where it ends."""

    start: int
    head: str
    end: int


def _iterate_audit_blocks(text: str) -> Iterator[_AuditBlock]:
    at = 0
    while (begun := _AUDIT.search(text, at)) is not None:
        ended = _HEAD_ENDS.search(text, begun.end())
        if ended is None:
            return  # the audits after it have no end either
        yield _AuditBlock(begun.start(), text[begun.end() : ended.start()], ended.end())
        at = ended.end()


@on_file(AUDIT_WEAKENED)
def find_audits_replaced_by_file(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds audits that have the name of one of SQLMesh's own, and replace it in each model.

    Their query is in no hash of SQLMesh. So the plan shows no change, now and after a later edit.
    (`Model.audits_with_args` and `Model._audit_metadata_hash_values`)
    """
    for path in inputs.changed_files or ():
        if PurePosixPath(path).suffix.lower() != ".sql":
            continue
        before = {
            (name, *map(_list_audit_lines, parts))
            for name, parts in _iterate_audits(inputs.read_text_before(path))
        }
        for name, parts in _iterate_audits(inputs.read_text_after(path)):
            if name in BUILT_IN_AUDITS and (name, *map(_list_audit_lines, parts)) not in before:
                yield RuleObservation(
                    AUDIT_WEAKENED,
                    f"The audit `{name}` has the name of one of SQLMesh's own and takes its place "
                    "in each model that calls it. SQLMesh takes that for no change of the models: "
                    "it holds in prod for each once the model itself changes.",
                    "the audit has a name of its own, or " + OWNER_AGREES,
                    path=path,
                    line=find_anchor_line(inputs.read_text_after(path) or "", (name,)),
                    subject=(name, "replaced"),
                )


def _iterate_audits(text: str | None) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yields the name of each audit in a file, in lower case, with its written head and query."""
    audits = list(_iterate_audit_blocks(text or ""))
    for audit, following in zip_longest(audits, audits[1:]):
        if (name := _NAME.search(audit.head)) is not None:
            query = (text or "")[audit.end : following.start if following else None]
            yield name.group(1).lower(), (audit.head, query.strip().rstrip(";"))


def _list_audit_lines(text: str) -> tuple[str, ...]:
    """Lists the lines without the blanks around them; a comment ends with its line."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _list_bound_queries(text: str | None) -> dict[str, tuple[str, str]]:
    """Maps each audit that has defaults to (defaults, query with these defaults)."""
    found: dict[str, tuple[str, str]] = {}
    for name, (head, query) in _iterate_audits(text):
        defaults = re.search(r"\bdefaults\s*\((?P<pairs>[^()]*)\)?", head, re.IGNORECASE)
        if defaults is None:
            continue
        bound = query
        for key, value in re.findall(r"(\w+)\s*:?=\s*('[^']*'|[^,]+)", defaults.group("pairs")):
            bound = re.sub(rf"@{key}\b", value.strip().replace("\\", r"\\"), bound)
        found[name] = " ".join(defaults.group("pairs").split()), bound
    return found


def _is_audit_skipped(head: str) -> bool:
    return bool(re.search(r"\bskip\s+true\b", head, re.IGNORECASE))


def _list_audit_heads(text: str | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for audit in _iterate_audit_blocks(text or ""):
        name = _NAME.search(audit.head)
        if name:
            found[name.group(1).lower()] = audit.head
    return found


@on_project(STILL_READ)
def find_removed_models_still_read(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds models that are removed while others still read them; SQLMesh refuses such a plan."""
    moved = {old for old, _ in list_renamed_models(inputs)}
    for name in list_gone_models(inputs):
        readers = sorted(
            reader for reader, model in inputs.after.items() if name in model.depends_on
        )
        if readers:
            yield RuleObservation(
                STILL_READ,
                f"{inputs.names.short_name(name)} goes away"
                + (" under this name" if name in moved else "")
                + f", and {quote_names(map(inputs.names.short_name, readers))} still read it.",
                READ_NO_MORE,
                model=inputs.before[name],
            )


@on_project(RENAMED)
def find_renamed_models(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds the same definition with another name: a removal and a full build."""
    pairs = [
        (old, new)
        for old, new in list_renamed_models(inputs)
        # A new catalog is one change of the configuration, not one of each model.
        if plain_name(old).partition(".")[2] != plain_name(new).partition(".")[2]
    ]
    for old, new in pairs:
        model = inputs.after[new]
        before, after = inputs.names.short_name(old), inputs.names.short_name(new)
        yield RuleObservation(
            RENAMED,
            f"{before} is called {after} now. For SQLMesh that is a removal and a new model with "
            "all of its history to build; readers outside lose the old name.",
            "a view keeps the old name, or its readers know the new one",
            model=inputs.before[old],
            path=inputs.find_path(model),
            line=1,
        )


CHANGED = find_rule("metric-changed")
_METRIC = re.compile(r"^[^\S\n]*METRIC\s*\(", re.IGNORECASE | re.MULTILINE)


@on_file(CHANGED)
def find_metrics_changed_in_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds metrics with another expression, and metrics that are gone."""
    for path in _list_metric_files(inputs):
        after = inputs.read_text_after(path) or ""
        dialect = inputs.default_dialect or "spark"
        old = _read_metrics(inputs.read_text_before(path) or "", dialect)
        new = _read_metrics(after, dialect)
        if old is None or new is None:
            continue  # a file that cannot be parsed fails the load
        for name, expression in old.items():
            if new.get(name) == expression or (name, expression) in inputs.compute_once(
                _list_metrics_after
            ):
                continue
            now = f"is `{new[name]}`, and was `{expression}`" if name in new else "is gone"
            yield RuleObservation(
                CHANGED,
                f"The metric `{name}` {now}: everybody who uses it gets another result. No model "
                "changes, so no plan shows it.",
                "the owner of the metric confirms it, and those who read it know",
                path=path,
                line=find_anchor_line(after, (name,)),
                subject=(name,),
            )


def _list_metric_files(inputs: RuleInputs) -> list[str]:
    return [
        path
        for path in inputs.changed_files or ()
        if path.endswith(".sql") and is_file_read_by_a_rule(path)
    ]


def _list_metrics_after(inputs: RuleInputs) -> frozenset[tuple[str, str]]:
    """Lists (name, expression) of the metrics in changed files: a metric may move between them."""
    dialect = inputs.default_dialect or "spark"
    texts = (inputs.read_text_after(path) or "" for path in _list_metric_files(inputs))
    return frozenset(one for text in texts for one in (_read_metrics(text, dialect) or {}).items())


def _read_metrics(text: str, dialect: str) -> Mapping[str, str] | None:
    """Reads the expressions of the metrics in a file, by name; None if it cannot be parsed."""
    with silence_worker_log("sqlglot"):
        try:
            trees = d.parse(text, default_dialect=dialect) if _METRIC.search(text) else []
        except Exception:  # any text may come here, and SQLMesh may fail in any way
            return None
        return {
            str(fields["name"]): fields["expression"]
            for tree in trees
            if isinstance(tree, d.Metric)
            and (fields := _read_metric_fields(tree, dialect)).keys() >= {"name", "expression"}
        }


def _read_metric_fields(tree: exp.Expr, dialect: str) -> dict[str, str]:
    return {
        each.name.lower(): each.args["value"].sql(dialect=dialect, comments=False)
        for each in tree.expressions
        if each.args.get("value") is not None
    }
