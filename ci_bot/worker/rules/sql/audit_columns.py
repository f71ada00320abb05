"""What keeps an audit from running: columns that are not there, and arguments that nobody gives.

SQLMesh renders an audit as it does when it runs it; nothing is asked of the engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp
from sqlmesh.core.audit.builtin import BUILT_IN_AUDITS
from sqlmesh.core.macros import RuntimeStage

from ci_bot.worker.process.log_silence import silence_log
from ci_bot.worker.rules.sql.missing_columns import ColumnsOf, list_missing_columns
from ci_bot.worker.rules.sql.queries import plain

_UNDEFINED = re.compile(r"Macro variable '(\w+)' is undefined")
# A variable of the audit's query; in `rank_@c` the name of a lambda's parameter is put in.
_VARIABLE = re.compile(r"(?<!\w)@(\w+)\b(?!\s*\()")
# Of a call, and not of the query.
_OF_THE_CALL = frozenset({"blocking", "skip"})
_GIVEN = frozenset({"this_model"})


@dataclass(frozen=True)
class AuditFault:
    """One thing that an audit needs and that is not there.

    Attributes:
        audit: the audit as SQLMesh defines it.
        column: what it reads; None where an argument is missing.
        table: where it reads the column, unless that is the audited model or not known.
        argument: the argument that is missing.
    """

    audit: Any = field(compare=False)
    column: str | None = None
    table: str | None = None
    argument: str | None = None

    @property
    def is_own(self) -> bool:
        """Whether the project defines the audit."""
        return self.audit.name not in BUILT_IN_AUDITS


def list_audit_faults(model: Any, columns_of: ColumnsOf) -> Iterator[AuditFault]:
    """What the audits of a model need in vain; those that are switched off need nothing."""
    own = columns_of(plain(model.fqn))
    if own is None:
        return
    for audit, arguments in model.audits_with_args:
        if audit.skip or str(arguments.get("skip", "")).lower() == "true":
            continue
        given = {name: value for name, value in arguments.items() if name not in _OF_THE_CALL}
        faults = _of_built_in(audit, given, own)
        if faults is None:
            faults = _of_rendered(model, audit, given, columns_of)
        yield from dict.fromkeys(faults)


def list_standalone_audit_faults(audit: Any, columns_of: ColumnsOf) -> list[AuditFault]:
    """What an audit that no model has attached needs in vain."""
    if audit.skip:
        return []
    try:
        with silence_log("sqlmesh.core.renderer"):
            missing = list(list_missing_columns(audit.render_audit_query(), columns_of))
    except Exception as error:  # the project's own macros run in here
        return _of_undefined(audit, error)
    return [AuditFault(audit, column=column, table=table) for column, table in missing]


def _of_undefined(audit: Any, error: Exception) -> list[AuditFault]:
    """Anything else may be there when the audit runs: what a macro asks of the engine, say."""
    undefined = _UNDEFINED.search(str(error))
    return [AuditFault(audit, argument=undefined.group(1))] if undefined else []


def _of_built_in(
    audit: Any, given: Mapping[str, Any], own: frozenset[str]
) -> list[AuditFault] | None:
    """Of SQLMesh's own audits, without rendering: they read what their arguments name.

    None where that does not say everything.
    """
    if audit.name not in BUILT_IN_AUDITS:
        return None
    read: list[str] = []
    for value in given.values():
        for part in value if isinstance(value, list | tuple) else [value]:
            if not isinstance(part, exp.Expression) or _is_more(part):
                return None
            read += [column.parts[0].name.lower() for column in part.find_all(exp.Column)]
    defined = {definition.name for definition in audit.macro_definitions}
    wanted = (
        set(_VARIABLE.findall(audit.query_.sql))
        - defined
        - set(given)
        - set(audit.defaults)
        - _GIVEN
    )
    return [
        *(AuditFault(audit, column=name) for name in read if name not in own),
        *(AuditFault(audit, argument=name) for name in sorted(wanted)),
    ]


def _is_more(part: Any) -> bool:
    """Whether an argument holds a query, a macro, or names of its own."""
    return any(
        isinstance(node, exp.Query | exp.Lambda) or node.key.startswith(("macro", "jinja"))
        for node in part.walk()
    )


def _of_rendered(
    model: Any, audit: Any, given: Mapping[str, Any], columns_of: ColumnsOf
) -> list[AuditFault]:
    try:
        with silence_log("sqlmesh.core.renderer"):
            query = model.render_audit_query(audit, **given, runtime_stage=RuntimeStage.AUDITING)
        missing = list(list_missing_columns(query, columns_of))
    except Exception as error:  # the project's own macros run in here
        return _of_undefined(audit, error)
    mine = plain(model.fqn)
    return [
        AuditFault(audit, column=column, table=None if table in (None, mine) else table)
        for column, table in missing
    ]
