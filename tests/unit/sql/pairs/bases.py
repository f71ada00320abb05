"""Random queries over three small tables, every alias of which is used once only.

So a rewrite can rename and move parts of a query without thinking of what hides what.
"""

from __future__ import annotations

from random import Random
from typing import Any

from sqlglot import parse_one

TABLES = ("db.t", "db.u", "db.e")
NUMBERS = ("k", "g", "v")
# The last one is empty, so it is met seldom.
MET = ("db.t", "db.t", "db.t", "db.u", "db.u", "db.u", "db.e")
COLUMNS = (*NUMBERS, "s")
WAYS = (
    *("JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"),
    *("LEFT SEMI JOIN", "LEFT ANTI JOIN", "CROSS JOIN"),
)
WORDS = ("a", "b", "A", "")


def parse(text: str) -> Any:
    return parse_one(text, dialect="spark")


class Base:
    """Makes one query from a seed."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.aliases = 0
        self.ctes: list[tuple[str, str]] = []

    def query(self) -> Any:
        """A SELECT or a set operation, now and then with CTEs before it."""
        body = self._set_operation() if self._chance(0.15) else self._select(depth=2)
        with_ = ", ".join(f"{name} AS ({text})" for name, text in self.ctes)
        return parse(f"WITH {with_} {body}" if with_ else body)

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _pick(self, items: Any) -> Any:
        return self.random.choice(items)

    def _alias(self) -> str:
        self.aliases += 1
        return f"a{self.aliases}"

    def _set_operation(self) -> str:
        kind = self._pick(["UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT"])
        branches = [self._plain_branch() for _ in range(self._pick([2, 2, 3]))]
        if kind in {"INTERSECT", "EXCEPT"}:
            branches = branches[:2]
        text = f" {kind} ".join(branches)
        if self._chance(0.4):
            alias = self._alias()
            return f"SELECT {alias}.x, {alias}.y FROM ({text}) AS {alias} WHERE {alias}.x > 0"
        return text

    def _plain_branch(self) -> str:
        alias, table = self._alias(), self._pick(MET)
        first, second = self.random.sample(NUMBERS, 2)
        where = f" WHERE {self._condition([alias])}" if self._chance(0.5) else ""
        return f"SELECT {alias}.{first} AS x, {alias}.{second} AS y FROM {table} AS {alias}{where}"

    def _source(self, depth: int) -> str:
        """A table, a subquery or a CTE, without its alias; it has the columns of a table."""
        if depth > 0 and self._chance(0.35):
            text = self._derived()
            if self._chance(0.5):
                if self.ctes and self._chance(0.4):
                    return str(self._pick(self.ctes)[0])
                self.ctes.append((f"c{len(self.ctes)}", text))
                return self.ctes[-1][0]
            return f"({text})"
        return str(self._pick(MET))

    def _derived(self) -> str:
        alias, table = self._alias(), self._pick(MET)
        where = f" WHERE {self._condition([alias])}" if self._chance(0.5) else ""
        all_ = ", ".join(f"{alias}.{column}" for column in COLUMNS)
        shape = self._pick(["plain", "computed", "grouped", "distinct", "ranked", "union"])
        if shape == "computed":
            all_ = f"{alias}.k, {alias}.g + 1 AS g, COALESCE({alias}.v, 7) AS v, {alias}.s"
        if shape == "grouped":
            total = self._pick(["SUM", "MIN", "MAX", "COUNT"])
            return (
                f"SELECT {alias}.k, {alias}.g, {total}({alias}.v) AS v, MAX({alias}.s) AS s"
                f" FROM {table} AS {alias}{where} GROUP BY {alias}.k, {alias}.g"
            )
        if shape == "distinct":
            return f"SELECT DISTINCT {all_} FROM {table} AS {alias}{where}"
        if shape == "ranked":
            return (
                f"SELECT {alias}.k, {alias}.g, RANK() OVER (PARTITION BY {alias}.k"
                f" ORDER BY {alias}.v DESC NULLS LAST) AS v, {alias}.s"
                f" FROM {table} AS {alias}{where}"
            )
        if shape == "union":
            other = self._alias()
            more = ", ".join(f"{other}.{column}" for column in COLUMNS)
            return (
                f"SELECT {all_} FROM {table} AS {alias}{where} UNION ALL"
                f" SELECT {more} FROM {self._pick(MET)} AS {other}"
            )
        return f"SELECT {all_} FROM {table} AS {alias}{where}"

    def _select(self, depth: int) -> str:
        first = self._alias()
        # Often the same table again: what tells two occurrences apart matters most.
        same = self._source(depth)
        text, seen, hidden = f"{same} AS {first}", [first], set()
        for _ in range(self._pick([0, 1, 1, 2])):
            alias = self._alias()
            source = same if self._chance(0.4) else self._source(depth)
            way = self._pick(WAYS)
            text += f" {way} {source} AS {alias}"
            if way != "CROSS JOIN":
                text += f" ON {self._join_condition(alias, [s for s in seen if s not in hidden])}"
            seen.append(alias)
            if "SEMI" in way or "ANTI" in way:
                hidden.add(alias)
        seen = [alias for alias in seen if alias not in hidden]
        where = f" WHERE {self._conditions(seen, nested=True)}" if self._chance(0.6) else ""
        return self._shape(text, seen, where)

    def _shape(self, text: str, seen: list[str], where: str) -> str:
        shape = self._pick(["plain", "plain", "plain", "grouped", "global", "distinct", "window"])
        if shape == "grouped":
            keys = [self._column(seen) for _ in range(self._pick([1, 2]))]
            listed = ", ".join(f"{key} AS x{n}" for n, key in enumerate(keys))
            having = f" HAVING {self._total(seen)} > 1" if self._chance(0.4) else ""
            return (
                f"SELECT {listed}, {self._total(seen)} AS y FROM {text}{where}"
                f" GROUP BY {', '.join(keys)}{having}"
            )
        if shape == "global":
            return f"SELECT {self._total(seen)} AS x, {self._total(seen)} AS y FROM {text}{where}"
        outputs = [self._value(seen) for _ in range(self._pick([1, 2, 3]))]
        if shape == "window":
            way = self._pick(["RANK()", "DENSE_RANK()", f"SUM({self._column(seen)})", "COUNT(*)"])
            outputs.append(
                f"{way} OVER (PARTITION BY {self._column(seen)}, {self._column(seen)}"
                f" ORDER BY {self._column(seen)} {self._pick(['DESC', 'ASC'])} NULLS FIRST)"
            )
        listed = ", ".join(f"{value} AS x{n}" for n, value in enumerate(outputs))
        told = "DISTINCT " if shape == "distinct" else ""
        body = f"SELECT {told}{listed} FROM {text}{where}"
        if shape == "plain" and self._chance(0.1):
            order = ", ".join(f"x{n} NULLS FIRST" for n in range(len(outputs)))
            body += f" ORDER BY {order} LIMIT {self._pick([1, 3])}"
        return body

    def _column(self, seen: list[str], columns: tuple[str, ...] = NUMBERS) -> str:
        return f"{self._pick(seen)}.{self._pick(columns)}"

    def _total(self, seen: list[str]) -> str:
        name = self._pick(["SUM", "MIN", "MAX", "COUNT", "COUNT(DISTINCT", "COUNT(*)"])
        if name == "COUNT(*)":
            return name
        if name == "COUNT(DISTINCT":
            return f"{name} {self._column(seen)})"
        return f"{name}({self._value(seen)})"

    def _value(self, seen: list[str]) -> str:
        one, other = self._column(seen), self._column(seen)
        return str(
            self._pick(
                [
                    one,
                    one,
                    one,
                    f"{one} + {other}",
                    f"{one} - {other}",
                    f"{one} * 2 - {other}",
                    f"COALESCE({one}, {other}, 0)",
                    f"NULLIF({one}, {other})",
                    f"CASE WHEN {self._condition(seen)} THEN {one} ELSE {other} END",
                    f"IF({one} > {other}, 1, 0)",
                ]
            )
        )

    def _join_condition(self, alias: str, seen: list[str]) -> str:
        found = f"{alias}.{self._pick(NUMBERS)} = {self._column(seen)}"
        if self._chance(0.35):
            sign = self._pick(["<", "<=", ">", "<>", "="])
            found += f" AND {self._column([alias])} {sign} {self._column([*seen, alias])}"
        if self._chance(0.2):
            found += f" AND {self._condition([alias])}"
        return found

    def _conditions(self, seen: list[str], *, nested: bool) -> str:
        parts = [self._condition(seen) for _ in range(self._pick([1, 1, 2, 3]))]
        if nested and self._chance(0.3):
            parts.append(self._subquery(seen))
        return " AND ".join(f"({part})" if " OR " in part else part for part in parts)

    def _subquery(self, seen: list[str]) -> str:
        alias, table = self._alias(), self._pick(MET)
        no = self._pick(["", "NOT "])
        if self._chance(0.6):
            sign = self._pick(["=", "<", ">="])
            return (
                f"{no}EXISTS (SELECT 1 AS one FROM {table} AS {alias} WHERE"
                f" {alias}.{self._pick(NUMBERS)} {sign} {self._column(seen)}"
                f" AND {self._condition([alias])})"
            )
        return (
            f"{no}{self._column(seen)} IN (SELECT {alias}.{self._pick(NUMBERS)} AS one"
            f" FROM {table} AS {alias} WHERE {self._condition([alias])})"
        )

    def _condition(self, seen: list[str]) -> str:
        one, other, word = self._column(seen), self._column(seen), self._pick(WORDS)
        return str(
            self._pick(
                [
                    f"{one} {self._pick(['=', '<>', '<', '<=', '>', '>='])} {self._pick('0123')}",
                    f"{one} {self._pick(['<>', '<=', '>'])} {self._pick('12')}",
                    f"{one} {self._pick(['=', '<>', '<', '>='])} {other}",
                    f"{one} BETWEEN 1 AND {self._pick('23')}",
                    f"{one} IN (1, {self._pick('023')}, 3)",
                    f"NOT {one} IN (0, {self._pick('12')})",
                    f"{one} IS NULL",
                    f"NOT {one} IS NULL",
                    f"{self._column(seen, ('s',))} = '{word}'",
                    f"{self._column(seen, ('s',))} LIKE '{word}%'",
                    f"{one} > 1 OR {other} < 2",
                    f"NOT ({one} > 1 AND {other} < 2)",
                    f"COALESCE({one}, 0) <> {other}",
                    f"{one} <=> {other}",
                ]
            )
        )


def base(seed: int) -> Any:
    """A query; equal seeds give equal queries."""
    return Base(Random(seed)).query()
