"""The projections of a SELECT: its columns, their order, and what they do to the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlglot import exp

from ci_bot.worker.compat.parsing.trees import EXCEPT
from ci_bot.worker.impact.expressions import Expressions, traits
from ci_bot.worker.impact.frames import FromEntry, NameScope
from ci_bot.worker.impact.values import Rowset, Traced, blob, named


class Projections:
    """The projections of one SELECT."""

    def __init__(self, expressions: Expressions, node: Any, frame: NameScope) -> None:
        self._terms = expressions.terms
        self._expressions = expressions
        self._frame = frame
        self.listed: list[tuple[str, Traced]] = []
        self.multiplied: list[Traced] = []
        self.ungrouped: list[Traced] = []  # what GROUP BY ALL groups by
        self.aggregated = self.spread = self._starred = False
        self._open: list[FromEntry] = []
        self._order = 0
        for position, item in enumerate(node.expressions):
            star = _star_of(item)
            if star is not None:
                self._star(item, star)
            else:
                self._one(item, position)

    def _one(self, item: Any, position: int) -> None:
        value = self._expressions.value(item, self._frame)
        found = traits(item)
        self.aggregated = self.aggregated or found.aggregates
        self.spread = self.spread or found.spreads
        if found.multiplies:
            self.multiplied.append(value)
        if not found.aggregates or found.mixes:
            self.ungrouped.append(value)
        if isinstance(item, exp.Aliases):
            names = [name.name.lower() for name in item.args["expressions"]]
        else:
            names = [item.output_name.lower() or f"\n{position}"]
        for name in names:
            self._put(name, value)
            if isinstance(item, exp.Alias | exp.Aliases):
                self._frame.aliases.setdefault(name, value)

    def _star(self, item: Any, star: Any) -> None:
        self._starred = True
        sources = [source for source in self._frame.sources if not source.hidden]
        if isinstance(item, exp.Column):
            qualifier = ".".join(part.name.lower() for part in item.parts[:-1])
            named = [source for source in sources if qualifier in source.names]
            if not named:  # the fields of a struct
                self.spread = True
            sources = named
        left_out = {name.name.lower() for name in star.args.get(EXCEPT) or ()}
        renamed = {
            entry.this.name.lower(): entry.alias.lower() for entry in star.args.get("rename") or ()
        }
        replaced = {}
        for entry in star.args.get("replace") or ():
            replaced[entry.alias.lower()] = self._expressions.value(entry, self._frame)
            found = traits(entry)
            self.spread = self.spread or found.aggregates or found.multiplies
        for source in sources:
            self._order |= source.relation.order
            if source.relation.missing is not None:
                self._open.append(source)
            for name in source.relation.columns:
                if name in left_out:
                    continue
                value = replaced.get(name) or source.column(name, self._terms)
                if value is not None:
                    self.ungrouped.append(value)
                    self._put(renamed.get(name, name), value)

    def _put(self, name: str, value: Traced) -> None:
        self.listed.append((name, value))

    @property
    def values(self) -> list[Traced]:
        """The columns by their places."""
        return [value for _, value in self.listed]

    def ordinal(self, item: Any, frame: NameScope) -> Traced:
        """A key of GROUP BY, which may be a projection's position."""
        if not (isinstance(item, exp.Literal) and item.is_int):
            return self._expressions.value(item, frame)
        position = int(item.this) - 1
        if self._starred or not 0 <= position < len(self.listed):
            return self._terms.value("some", self.values)
        return self.listed[position][1]

    def relation(
        self, rows: Traced, *, also: Traced | None = None, clauses: Mapping[str, int] | None = None
    ) -> Rowset:
        """The result; `also` is what every column depends on."""
        listed: Iterable[tuple[str, Traced]] = self.listed
        if also is not None:
            listed = [(n, self._terms.value("aggregate", [v, also])) for n, v in self.listed]
        columns, repeated = named(self._terms, listed)
        return Rowset(
            columns=columns,
            rows=rows,
            missing=self._missing if self._open else None,
            order=self._order,
            tables=self._tables(),
            clauses=clauses or {},
            repeated=repeated,
            unplaced=self._starred and bool(self._frame.merged),
        )

    def mixed(self, rows: Traced, more: list[Traced]) -> Rowset:
        """The result where any column may hold anything that is read."""
        parts = [self._frame.everything(), rows, *self.values, *more]
        return blob(
            self._terms, self._terms.value("mixed", parts), dict(self.listed), self._tables()
        )

    def _missing(self, name: str) -> Traced:
        found = [source.unlisted(name, self._terms) for source in self._open]
        return self._terms.value("open", [value for value in found if value is not None])

    def _tables(self) -> frozenset[str]:
        return frozenset(t for source in self._frame.sources for t in source.relation.tables)


def _star_of(item: Any) -> Any:
    """The star of a projection that is one: `*` or `o.*`."""
    if isinstance(item, exp.Star):
        return item
    return item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else None
