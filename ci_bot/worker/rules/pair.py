"""One model before and after the change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ci_bot.contracts.documents.plan import ColumnChange
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.sql.algebra.terms import Interner
from ci_bot.worker.rules.sql.audits import Promises, promises
from ci_bot.worker.rules.sql.columns import column_changes
from ci_bot.worker.rules.sql.meaning import Meaning
from ci_bot.worker.rules.sql.proof import Form, form_of
from ci_bot.worker.rules.sql.queries import Queries, Query, plain


@dataclass(frozen=True)
class Pair:
    """A changed model with both definitions; `renamed` where only its name or catalog changed."""

    before: Any
    after: Any
    readers: tuple[Any, ...]
    queries: Queries
    renamed: bool = False
    new_names: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def query_before(self) -> Query | None:
        return self.queries.of(self.before)

    @cached_property
    def query_after(self) -> Query | None:
        return self.queries.of(self.after)

    @cached_property
    def same_text(self) -> bool:
        """Whether both queries are rendered as one text; most pairs are here for their metadata."""
        old, new = self.query_before, self.query_after
        if old is None or new is None or old.rendered is None or new.rendered is None:
            return False
        if self.same_query and self.before.python_env == self.after.python_env:
            return bool(old.rendered == new.rendered)
        return self.is_one_text(old.rendered, new.rendered)

    def is_one_text(self, old: Any, new: Any) -> bool:
        """Whether the engine gets the same text for two trees.

        The parser takes trees for equal whose texts differ in case, as in a key of JSON, and has
        two types for what is one of the engine's.
        """
        dialect = self.before.dialect
        return self.after.dialect == dialect and bool(
            old.sql(dialect=dialect, comments=False) == new.sql(dialect=dialect, comments=False)
        )

    @cached_property
    def forms(self) -> tuple[Form, Form] | None:
        """Both queries in normal form; None where one cannot be taken apart."""
        old, new = self.query_before, self.query_after
        if old is None or new is None or old.rendered is None or new.rendered is None:
            return None
        keys = Interner()
        was, now = form_of(old.rendered, keys, self.new_names), form_of(new.rendered, keys)
        return (was, now) if was is not None and now is not None else None

    @cached_property
    def is_proved_same(self) -> bool:
        """Whether both queries, as they are rendered while loading, give the same rows."""
        if self.forms is None:
            return False
        was, now = self.forms
        return was.proves_same(now, one_text=self.same_text)

    @cached_property
    def meanings(self) -> tuple[Meaning, Meaning] | None:
        """Both meanings, where they may differ; None where it is proved that they do not.

        Then no filter, no join and no group is another one, however they are written now.
        """
        if self.same_text or self.forms is None or self.is_proved_same:
            return None
        was, now = self.forms
        return Meaning(was, self.before.dialect), Meaning(now, self.after.dialect)

    @cached_property
    def promises(self) -> tuple[Promises, Promises]:
        return promises(self.before), promises(self.after)

    @cached_property
    def columns(self) -> list[ColumnChange]:
        return column_changes(self.before, self.after, self.readers, queries=self.queries)

    @cached_property
    def same_query(self) -> bool:
        """Whether the text of the query is the same on both sides."""
        old = getattr(self.before, "query_", None)
        new = getattr(self.after, "query_", None)
        return old is not None and new is not None and old.sql == new.sql


def pairs(inputs: RuleInputs, queries: Queries) -> Iterator[Pair]:
    """Models that are on both sides and differ, with models that only got another name."""
    moved = renamed(inputs)
    new_names = {plain(old): plain(new) for old, new in moved}
    for name, after in inputs.after.items():
        before = inputs.before.get(name)
        if before is not None and name not in inputs.from_base and _differ(before, after):
            yield Pair(before, after, _readers(inputs, name), queries, new_names=new_names)
    for old, new in moved:
        yield Pair(
            inputs.before[old],
            inputs.after[new],
            _readers(inputs, new),
            queries,
            renamed=True,
            new_names=new_names,
        )


def _readers(inputs: RuleInputs, name: str) -> tuple[Any, ...]:
    return tuple(
        inputs.after[reader]
        for reader in sorted(inputs.readers.get(name, ()))
        if reader in inputs.after
    )


def _differ(before: Any, after: Any) -> bool:
    return before is not after and bool(
        before.data_hash != after.data_hash
        or before.metadata_hash != after.metadata_hash
        # Neither hash covers these.
        or before.ignored_rules != after.ignored_rules
    )


def gone(inputs: RuleInputs) -> list[str]:
    """Models of prod that the head does not have, as far as the head could be loaded."""
    if not inputs.loaded:
        return []
    return sorted(set(inputs.before) - set(inputs.after) - inputs.from_base)


def fresh(inputs: RuleInputs) -> list[str]:
    """Models that prod does not have."""
    return sorted(set(inputs.after) - set(inputs.before) - inputs.from_base)


def renamed(inputs: RuleInputs) -> list[tuple[str, str]]:
    """(old, new) names of models that went to another catalog, schema or name unchanged."""
    old_names, new_names = gone(inputs), fresh(inputs)
    if not old_names or not new_names:
        return []
    found: list[tuple[str, str]] = []
    by_tail = {plain(name).partition(".")[2]: name for name in new_names}
    for old in old_names:
        twin = by_tail.get(plain(old).partition(".")[2])
        if twin is not None:
            found.append((old, twin))
    taken_old = {old for old, _ in found}
    taken_new = {new for _, new in found}
    by_text: dict[str, str] = {}
    for new in new_names:
        text = _text(inputs.after[new])
        if new not in taken_new and text:
            by_text.setdefault(text, new)
    for old in old_names:
        text = _text(inputs.before[old])
        if old not in taken_old and text in by_text:
            found.append((old, by_text.pop(text)))
    return found


def _text(model: Any) -> str:
    if model.is_sql and not model.kind.is_external:
        query = getattr(model, "query_", None)
        # Stored queries are text that may differ in layout from the file's.
        return str(model.query.sql(dialect=model.dialect, comments=False)) if query else ""
    if model.is_python:
        return "\n".join(
            item.payload for item in model.python_env.values() if "def " in item.payload
        )
    return ""


def touched(inputs: RuleInputs, changed: Iterable[Pair]) -> list[tuple[Any, Any]]:
    """(before or None, after) of every model that model rules look at."""
    pairs_found = [(pair.before, pair.after) for pair in changed]
    known = {after.fqn for _, after in pairs_found}
    return pairs_found + [(None, inputs.after[name]) for name in fresh(inputs) if name not in known]
