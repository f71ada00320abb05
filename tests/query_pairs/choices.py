"""Choices that can be taken again with some of them changed: how a query becomes a pair.

A grammar asks for each decision by a name. A second text is made from the same decisions with one
or two others: parentheses that are left out, another name, another order. Whether that matters is
for Spark to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

Item = TypeVar("Item")

# How much more often a spelling is changed than what is computed.
SPELLING = 4


@dataclass
class Choices:
    """Decisions by name; those that nobody took yet are drawn."""

    random: Random | None
    taken: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    spellings: set[str] = field(default_factory=set)
    prefix: str = ""

    def at(self, name: str) -> Choices:
        """The same decisions below a name, for a part of the text."""
        inner = f"{self.prefix}{name}."
        return Choices(self.random, self.taken, self.counts, self.spellings, inner)

    def pick(self, name: str, items: Sequence[Item]) -> Item:
        """One of the items."""
        full = self.prefix + name
        if full not in self.taken:
            self.taken[full] = self.random.randrange(len(items)) if self.random else 0
        self.counts[full] = len(items)
        return items[self.taken[full] % len(items)]

    def spell(self, name: str, items: Sequence[Item]) -> Item:
        """One of several spellings, which may mean the same."""
        self.spellings.add(self.prefix + name)
        return self.pick(name, items)

    def order(self, name: str, items: Sequence[Item]) -> list[Item]:
        """The items in some order."""
        rest, found = list(items), []
        for place in range(len(items) - 1):
            found.append(rest.pop(self.spell(f"{name}.{place}", range(len(rest)))))
        return [*found, *rest]

    def changed(self, random: Random) -> dict[str, int]:
        """The decisions with one or two others."""
        names = [
            name
            for name in self.counts
            if self.counts[name] > 1
            for _ in range(SPELLING if name in self.spellings else 1)
        ]
        found = dict(self.taken)
        for name in {random.choice(names) for _ in range(random.choice((1, 1, 1, 2)))}:
            found[name] = (found[name] + random.randrange(1, self.counts[name])) % self.counts[name]
        return found
