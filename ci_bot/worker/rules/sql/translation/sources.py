"""FROM and JOIN: which sources a SELECT has, and how they hang together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from sqlglot import exp

from ci_bot.worker.compat.parsing.trees import FROM
from ci_bot.worker.rules.sql.algebra.blocks import (
    Block,
    Hanging,
    Hung,
    Outer,
    Part,
)
from ci_bot.worker.rules.sql.algebra.terms import (
    Operation,
    QuerySource,
    SourceColumn,
    Term,
    comparison,
    conjuncts,
)
from ci_bot.worker.rules.sql.queries import conjuncts as written_parts
from ci_bot.worker.rules.sql.translation.entries import Entries, Role, SourceHost
from ci_bot.worker.rules.sql.translation.frame import Frame, Item
from ci_bot.worker.rules.sql.translation.notes import Joined
from ci_bot.worker.rules.sql.translation.scalars import Scalars
from ci_bot.worker.rules.sql.translation.scan import Mentions

Way = Literal["inner", "left", "right", "full", "semi", "anti"]
_JOIN = frozenset({"this", "on", "using", "side", "kind"})
_WAYS: dict[tuple[str, str], Way] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "inner",
    ("", "SEMI"): "semi",
    ("LEFT", "SEMI"): "semi",
    ("", "ANTI"): "anti",
    ("LEFT", "ANTI"): "anti",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
}


class JoinHost(SourceHost, Protocol):
    """The reader of queries, which also takes notes."""

    def first(self, node: Any, item: Item) -> None:
        """Notes what stands first in FROM."""

    def joined(self, join: Joined) -> None:
        """Notes a join for whoever tells changes."""


@dataclass(frozen=True)
class From:
    """What FROM holds; `alone` is its only query, where that stands for the whole SELECT."""

    part: Part
    alone: Block | None = None


class Sources:
    """Reads FROM, JOIN and LATERAL VIEW of one SELECT into its frame."""

    def __init__(self, host: JoinHost, frame: Frame, scalars: Scalars, used: Mentions) -> None:
        self.host = host
        self.frame = frame
        self.scalars = scalars
        self.entries = Entries(host, frame, scalars, used)
        self.part = Part()

    def read(self, select: Any, may_stand_for: Callable[[Block], bool]) -> From:
        """The sources of `select`.

        `may_stand_for` says whether a query can take the place of the SELECT that reads it alone.
        """
        first = select.args.get(FROM)
        joins = select.args.get("joins") or []
        laterals = select.args.get("laterals") or []
        ways = [self._way(join) for join in joins]
        if first is not None:
            alone = None if joins or laterals else may_stand_for
            item, part = self.entries.enter(first.this, _role("inner", ways), alone)
            if part is None:
                self.host.first(first.this, item)
                return From(Part(), item.block)
            self.host.first(first.this, item)
            self.part.add(part)
        for place, (join, way) in enumerate(zip(joins, ways, strict=True)):
            self._join(join, way, _role(way, ways[place + 1 :]))
        for lateral in laterals:
            self.part.hung.append(self.entries.generated(lateral))
        return From(self.part)

    def _way(self, join: Any) -> Way:
        for name, value in join.args.items():
            if value and name not in _JOIN:
                self.host.gap(f"a join with {name}")
        way = _WAYS.get((join.side or "", join.kind or ""))
        if way is None:
            self.host.gap(f"a {join.side} {join.kind} join")
        return way or "inner"

    def _join(self, join: Any, way: Way, role: Role) -> None:
        if isinstance(join.this, exp.Unnest | exp.Lateral):
            if way != "inner" or join.args.get("on") is not None or join.args.get("using"):
                self.host.gap("a join of a function with a condition")
            self.part.hung.append(self.entries.generated(join.this))
            return
        before = [item for item in self.frame.items.values() if not item.is_hidden]
        item, part = self.entries.enter(join.this, role)
        if part is None:
            raise AssertionError("unreachable: a joined query never stands for the SELECT")
        read = self._conditions(join, before, item)
        on = [term for term, _ in read]
        turned = way == "right" and self._only_source() is not None
        other = before[0] if turned else None
        self.host.joined(Joined(join, way, item, self.frame, read, other))
        if way == "inner":
            self.part.add(part)
            self.part.where += on
        elif way in {"right", "full"}:
            self._outer(part, on, full=way == "full")
        else:
            item.is_hidden = way != "left"
            how: Hanging = "left" if way == "left" else "semi" if way == "semi" else "anti"
            self.part.hung.append(Hung(part.inner[0], how, [*on, *part.where]))
        self._note_equal(way, on, part.inner)

    def _conditions(self, join: Any, before: list[Item], item: Item) -> list[tuple[Term, Any]]:
        """The conditions of a join, each with what it was read from."""
        on = join.args.get("on")
        parts = written_parts(on) if on is not None else []
        read = [(self.scalars.read(part), part) for part in parts]
        found = [(term, part) for whole, part in read for term in conjuncts(whole)]
        for key in join.args.get("using") or []:
            name = key.name.lower()
            left = before[0].column(name) if len(before) == 1 else None
            right = item.column(name)
            # Elsewhere in the SELECT the bare name is one column of both sides.
            self.host.gap(f"USING {name}, which is not written out")
            if left is None or right is None:
                found.append((Operation(f"using:{name}"), key))
            else:
                found.append((comparison("eq", left, right), key))
        return found

    def _note_equal(self, way: Way, on: list[Term], joined: list[QuerySource]) -> None:
        for term in on if way in {"inner", "left"} else ():
            if not isinstance(term, Operation) or term.op != "eq":
                continue
            left, right = term.parts
            if not isinstance(left, SourceColumn) or not isinstance(right, SourceColumn):
                continue
            for kept, other in ((left, right), (right, left)):
                if way == "inner" or (other.source in joined and kept.source not in joined):
                    self.frame.make_equal(kept, other)

    def _outer(self, part: Part, on: list[Term], *, full: bool) -> None:
        only = self._only_source()
        if not full and only is not None:
            # A RIGHT JOIN of one source is a LEFT JOIN, told from the other side.
            self.part = Part(part.inner, [*part.hung, Hung(only, "left", on)], part.where)
        else:
            self.part = Part([Outer(part, self.part, full, on)])

    def _only_source(self) -> QuerySource | None:
        """What stands before a join, where that is one source without conditions."""
        part = self.part
        only = part.inner[0] if len(part.inner) == 1 and not part.hung and not part.where else None
        return None if isinstance(only, Outer) else only


def _role(way: Way, later: Sequence[Way]) -> Role:
    """Whether the rows of a source can be without a match, by its own join or by a later one."""
    if way == "full" or any(other in {"right", "full"} for other in later):
        return "outer"
    return "inner" if way in {"inner", "right"} else "hung"
