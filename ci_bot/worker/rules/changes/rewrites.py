"""Whether a changed query is only another spelling of the old one, at any time that it may run."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlmesh.core import dialect as d

from ci_bot.worker.rules.pair import Pair
from ci_bot.worker.rules.sql.algebra.terms import Interner
from ci_bot.worker.rules.sql.proof import form_of
from ci_bot.worker.rules.sql.python_code import is_pure
from ci_bot.worker.rules.sql.queries import Query
from ci_bot.worker.rules.statements import model_statements

_TIMES = ("start_", "end_", "execution_")


def gives_the_same(pair: Pair) -> bool:
    """Whether it is proved that both versions give the same rows, whatever the data and the time.

    While a project is loaded, start and end are one and the same moment; so the proof is made once
    more where all times differ. What a macro does with them only its own text says, so macros have
    to be the same ones.
    """
    if not pair.is_proved_same:
        return False
    old, new = pair.query_before, pair.query_after
    if old is None or new is None or old.written is None or new.written is None:
        return False
    return (
        _same_frame(pair) and _same_macros(pair, old, new) and _same_at_other_times(pair, old, new)
    )


def _same_frame(pair: Pair) -> bool:
    """Whether the model around the query is the same."""
    before, after = pair.before, pair.after
    return bool(
        before.dialect == after.dialect
        and before.gateway == after.gateway
        and before.kind.name == after.kind.name
        and before.kind.data_hash_values == after.kind.data_hash_values
        and before.lookback == after.lookback
        and sorted(c.sql() for c in before.partitioned_by)
        == sorted(c.sql() for c in after.partitioned_by)
        and _declared_types(before) == _declared_types(after)
        and list(model_statements(before)) == list(model_statements(after))
    )


def _declared_types(model: Any) -> dict[str, str]:
    declared = model.columns_to_types_ or {}
    return {name: kind.sql(dialect="spark") for name, kind in declared.items()}


def _same_macros(pair: Pair, old: Query, new: Query) -> bool:
    """Whether macros are called alike, and are the same ones.

    A macro's call may be spelled otherwise, come or go, where the macro only writes its arguments
    down: one of SQLMesh's own, or one whose code shows it. None of its arguments may be a time,
    which it might compare with another.
    """
    before, after = _calls(old), _calls(new)
    if not before and not after:
        return True
    if _definitions(pair.before) != _definitions(pair.after):
        return False
    code, was = _code(pair.after), _code(pair.before)
    for name in code.keys() | was.keys():
        one, other = was.get(name), code.get(name)
        if one != other and ((one is not None and other is not None) or not is_pure(one or other)):
            return False
    projects_own = {name.lower(): text for name, text in (*was.items(), *code.items())}
    differing = [*(before - after).elements(), *(after - before).elements()]
    calls = {
        call.sql(): call for query in (old, new) for call in query.written_tree.all(d.MacroFunc)
    }
    return not any(
        _mentions_time(calls[text])
        or ((own := projects_own.get(_name(calls[text]))) is not None and not is_pure(own))
        for text in differing
    )


def _calls(query: Query) -> Counter[str]:
    return Counter(call.sql() for call in query.written_tree.all(d.MacroFunc))


def _name(call: Any) -> str:
    return str(call.this.name or call.name).lower()


def _mentions_time(call: Any) -> bool:
    return any(var.name.lower().startswith(_TIMES) for var in call.find_all(d.MacroVar))


def _code(model: Any) -> dict[str, str]:
    """The text of the macros and variables that a model uses."""
    return {name: str(item.payload) for name, item in model.python_env.items()}


def _definitions(model: Any) -> list[str]:
    return [definition.sql() for definition in model.macro_definitions]


def _same_at_other_times(pair: Pair, old: Query, new: Query) -> bool:
    if not any(query.written_tree.has(d.MacroVar, d.MacroFunc) for query in (old, new)):
        return True
    before, after = old.rendered_apart, new.rendered_apart
    if before is None or after is None:
        return False
    keys = Interner()
    was, now = form_of(before, keys, pair.new_names), form_of(after, keys)
    if was is None or now is None:
        return False
    return was.proves_same(now, one_text=pair.is_one_text(before, after))
