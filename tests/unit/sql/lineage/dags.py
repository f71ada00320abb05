"""Small projects of SQL models, generated: every kind of query that decides about columns or rows.

All that they compute is determined by their sources: whole numbers, total orders, no ties.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from tests.unit.sql.lineage.parts import NUMBER, SOURCES, Parts, Table
from tests.unit.sql.lineage.rare import RARE


def dag(random: Random) -> list[Table]:
    """Three to six models over the sources, each reading what stands before it."""
    tables = list(SOURCES)
    for number in range(random.randint(3, 6)):
        query, columns = Query(random, tables).write()
        tables.append(Table(f"m.model_{number}", columns, query))
    return tables


class Query(Parts):
    """Writes one query over `tables`."""

    def write(self) -> tuple[str, dict[str, str]]:
        kinds: list[tuple[int, Callable[[], tuple[str, dict[str, str]]]]] = [
            (4, self.plain),
            (3, self.joined),
            (3, self.grouped),
            (1, self.total),
            (2, self.windowed),
            (2, self.union),
            (2, self.with_ctes),
            (2, self.star),
            (2, self.nested),
            (1, self.distinct),
            (1, self.limited),
            (1, self.qualified),
            (1, self.exploded),
            (1, self.recursive),
            (1, self.using),
            *((1, partial(kind, self)) for kind in RARE),
        ]
        weights = [weight for weight, _ in kinds]
        return self.random.choices([kind for _, kind in kinds], weights)[0]()

    def plain(self) -> tuple[str, dict[str, str]]:
        table, alias = self.table(), self.alias()
        items, columns = self.items((alias, table))
        return f"SELECT {items} FROM {table.name} AS {alias}{self.maybe_where((alias, table))}", (
            columns
        )

    def joined(self) -> tuple[str, dict[str, str]]:
        left, right = self.table(), self.table()
        a, b = self.alias(), self.alias()
        how = self.random.choice(["JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN", "FULL JOIN"])
        seen = [(a, left)] if how in ("SEMI JOIN", "ANTI JOIN") else [(a, left), (b, right)]
        on = f"{self.number((a, left))} = {self.number((b, right))}"
        if self.random.random() < 0.3:
            on += f" AND {self.condition((b, right))}"
        items, columns = self.items(*seen)
        where = self.maybe_where(*seen)
        return (
            f"SELECT {items} FROM {left.name} AS {a} {how} {right.name} AS {b} ON {on}{where}",
            columns,
        )

    def grouped(self) -> tuple[str, dict[str, str]]:
        table, alias = self.table(), self.alias()
        source = (alias, table)
        key = self.number(source)
        columns = {"key": NUMBER}
        written = [f"{key} AS key"]
        for number in range(self.random.randint(1, 3)):
            value = self.number(source)
            columns[f"a{number}"] = NUMBER
            written.append(f"{self._aggregate(value, source)} AS a{number}")
        group = self.random.choice(["1", "ALL", key if not key.isdigit() else "1"])
        having = ""
        if self.random.random() < 0.3:
            having = f" HAVING {self._aggregate(self.number(source), source)} > 1"
        return (
            f"SELECT {', '.join(written)} FROM {table.name} AS {alias}"
            f"{self.maybe_where(source)} GROUP BY {group}{having}",
            columns,
        )

    def _aggregate(self, value: str, source: tuple[str, Table]) -> str:
        return self.random.choice(
            [
                f"CAST(SUM({value}) AS BIGINT)",
                f"MAX({value})",
                "COUNT(*)",
                f"COUNT({value})",
                f"COUNT(DISTINCT {value})",
                f"CAST(SUM({value}) FILTER (WHERE {self.condition(source)}) AS BIGINT)",
                f"COUNT(*) FILTER (WHERE {self.condition(source)})",
            ]
        )

    def total(self) -> tuple[str, dict[str, str]]:
        table, alias = self.table(), self.alias()
        source = (alias, table)
        first = self._aggregate(self.number(source), source)
        second = self._aggregate(self.number(source), source)
        return (
            f"SELECT {first} AS first, {second} AS second FROM {table.name} AS {alias}"
            f"{self.maybe_where(source)}",
            {"first": NUMBER, "second": NUMBER},
        )

    def windowed(self) -> tuple[str, dict[str, str]]:
        table, alias = self.table(), self.alias()
        source = (alias, table)
        items, columns = self.items(source, most=2)
        over = f"(PARTITION BY {self.number(source)} ORDER BY {self.number(source)})"
        function = self.random.choice(["RANK()", "DENSE_RANK()", f"COUNT({self.number(source)})"])
        name = self.random.choice(["", f"w{self.random.randint(0, 1_000_000)}"])
        place = self.fresh("place", columns)
        window = f"{function} OVER {name or over} AS {place}"
        ending = f" WINDOW {name} AS {over}" if name else ""
        return (
            f"SELECT {items}, {window} FROM {table.name} AS {alias}"
            f"{self.maybe_where(source)}{ending}",
            {**columns, place: NUMBER},
        )

    def union(self) -> tuple[str, dict[str, str]]:
        parts = []
        for _ in range(self.random.randint(2, 3)):
            table, alias = self.table(), self.alias()
            source = (alias, table)
            parts.append(
                f"SELECT {self.number(source)} AS x, {self.number(source)} AS y "
                f"FROM {table.name} AS {alias}{self.maybe_where(source)}"
            )
        kind = self.random.choice(["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
        return f" {kind} ".join(parts), {"x": NUMBER, "y": NUMBER}

    def with_ctes(self) -> tuple[str, dict[str, str]]:
        first, columns = Query(self.random, self.tables).write()
        cte = Table("part", columns)
        other = Query(self.random, [*self.tables, cte, cte, cte, cte, cte, cte])
        second, found = other.write()
        while second.startswith("WITH"):
            second, found = other.write()
        return f"WITH part AS ({first}) {second}", found

    def star(self) -> tuple[str, dict[str, str]]:
        table = self.table()
        alias = self.alias()
        source = (alias, table)
        extra = self.fresh("extra", table.columns)
        forms = [
            (f"SELECT * FROM {table.name} AS {alias}{self.maybe_where(source)}", table.columns),
            (
                f"SELECT {alias}.*, {self.number(source)} AS {extra} FROM {table.name} AS {alias}",
                {**table.columns, extra: NUMBER},
            ),
        ]
        if len(table.columns) > 1:
            gone = self.random.choice(list(table.columns))
            left = {name: kind for name, kind in table.columns.items() if name != gone}
            forms.append((f"SELECT * EXCLUDE ({gone}) FROM {table.name} AS {alias}", left))
        if (name := self.column(table, NUMBER)) is not None:
            forms.append(
                (
                    f"SELECT * REPLACE ({self.number(source)} AS {name}) "
                    f"FROM {table.name} AS {alias}",
                    table.columns,
                )
            )
        query, columns = self.random.choice(forms)
        return query, dict(columns)

    def nested(self) -> tuple[str, dict[str, str]]:
        table, other = self.table(), self.table()
        a, b = self.alias(), self.alias()
        items, columns = self.items((a, table), most=2)
        left, right = self.number((a, table)), self.number((b, other))
        inner = self.maybe_where((b, other))
        matched = f"{left} = {right}"
        top = self.fresh("top", columns)
        forms = [
            (f"SELECT {items} FROM {table.name} AS {a} WHERE {left} IN "
             f"(SELECT {right} FROM {other.name} AS {b}{inner})"),
            (f"SELECT {items} FROM {table.name} AS {a} WHERE EXISTS "
             f"(SELECT 1 FROM {other.name} AS {b} WHERE {matched})"),
            (f"SELECT {items} FROM {table.name} AS {a} WHERE NOT EXISTS "
             f"(SELECT * FROM {other.name} AS {b} WHERE {matched})"),
        ]  # fmt: skip
        scalar = (
            f"SELECT {items}, (SELECT MAX({right}) FROM {other.name} AS {b}{inner}) AS {top} "
            f"FROM {table.name} AS {a}"
        )
        correlated = (
            f"SELECT {items}, (SELECT COUNT(*) FROM {other.name} AS {b} WHERE {matched}) AS {top} "
            f"FROM {table.name} AS {a}"
        )
        derived = (
            f"SELECT d.p, d.q + 1 AS {top} FROM (SELECT {left} AS p, {self.number((a, table))} AS q "
            f"FROM {table.name} AS {a}{self.maybe_where((a, table))}) AS d"
        )
        renamed = (
            f"SELECT d.u AS p, d.v AS {top} FROM (SELECT {left}, {self.number((a, table))} "
            f"FROM {table.name} AS {a}) AS d(u, v)"
        )
        lateral = (
            f"SELECT {items}, l.z AS {top} FROM {table.name} AS {a}, "
            f"LATERAL (SELECT MAX({right}) AS z FROM {other.name} AS {b} WHERE {matched}) AS l"
        )
        choice = self.random.randint(0, 5)
        if choice == 0:
            return self.random.choice(forms), columns
        if choice in (1, 2, 5):
            query = {1: scalar, 2: correlated, 5: lateral}[choice]
            return query, {**columns, top: NUMBER}
        return derived if choice == 3 else renamed, {"p": NUMBER, top: NUMBER}

    def distinct(self) -> tuple[str, dict[str, str]]:
        table, alias = self.table(), self.alias()
        items, columns = self.items((alias, table))
        return f"SELECT DISTINCT {items} FROM {table.name} AS {alias}", columns

    def limited(self) -> tuple[str, dict[str, str]]:
        table, alias = self.table(), self.alias()
        # All columns in the order: what is cut off is then the same, whatever ties there are.
        items, columns = self.items((alias, table))
        return (
            f"SELECT {items} FROM {table.name} AS {alias} "
            f"ORDER BY {self.order(alias, table)} LIMIT {self.random.randint(1, 6)}",
            columns,
        )

    def qualified(self) -> tuple[str, dict[str, str]]:
        table, alias = self.table(), self.alias()
        source = (alias, table)
        items, columns = self.items(source)
        return (
            f"SELECT {items} FROM {table.name} AS {alias} QUALIFY RANK() OVER "
            f"(PARTITION BY {self.number(source)} ORDER BY {self.number(source)}) <= 2",
            columns,
        )

    def exploded(self) -> tuple[str, dict[str, str]]:
        table, alias = self.table(), self.alias()
        source = (alias, table)
        items, columns = self.items(source, most=2)
        values = f"[{self.number(source)}, {self.number(source)}]"
        name = self.fresh("item", [*columns, *table.columns])
        forms = [
            f"SELECT {items}, UNNEST({values}) AS {name} FROM {table.name} AS {alias}",
            f"SELECT {items}, e.{name} FROM {table.name} AS {alias}, UNNEST({values}) AS e({name})",
            f"SELECT {items}, e.{name} FROM {table.name} AS {alias}, "
            f"UNNEST(RANGE(0, LEAST(GREATEST({self.number(source)}, 0), 3))) AS e({name})",
        ]
        return self.random.choice(forms), {**columns, name: NUMBER}

    def recursive(self) -> tuple[str, dict[str, str]]:
        table, other = self.table(), self.table()
        a, b = self.alias(), self.alias()
        return (
            f"WITH RECURSIVE steps(n, depth) AS (SELECT {self.number((a, table))}, 0 "
            f"FROM {table.name} AS {a} UNION SELECT {self.number((b, other))}, steps.depth + 1 "
            f"FROM steps JOIN {other.name} AS {b} ON {self.number((b, other))} = steps.n "
            f"WHERE steps.depth < 2) SELECT n, depth FROM steps",
            {"n": NUMBER, "depth": NUMBER},
        )

    def using(self) -> tuple[str, dict[str, str]]:
        left, right = self.table(), self.table()
        common = [
            name
            for name, holds in left.columns.items()
            if right.columns.get(name) == holds and left.name != right.name
        ]
        if not common:
            return self.plain()
        key = self.random.choice(common)
        rest = [f"a.{name}" for name in left.columns if name != key][:2]
        columns = {key: left.columns[key]}
        columns |= {name.partition(".")[2]: left.columns[name.partition(".")[2]] for name in rest}
        how = self.random.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        return (
            f"SELECT {', '.join([key, *rest])} FROM {left.name} AS a {how} {right.name} AS b "
            f"USING ({key})",
            columns,
        )
