"""Queries in a form in which they can be proved to give the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ci_bot.worker.rules.sql.algebra.blocks import Block
from ci_bot.worker.rules.sql.algebra.keys import Sealer
from ci_bot.worker.rules.sql.algebra.terms import Interner, TermKey
from ci_bot.worker.rules.sql.translation.notes import Notes
from ci_bot.worker.rules.sql.translation.reader import QueryTooLargeError, Reader


@dataclass(frozen=True)
class Form:
    """A query in normal form. Forms of one `Interner` can be compared.

    Attributes:
        gaps: what was not understood, in words. Where there is any, nothing is proved.
        rows: the key of its rows; None where there is no telling.
        results: the keys of its results by name, in their order.
        notes: its clauses as they are met.
    """

    block: Block
    notes: Notes
    sealer: Sealer
    gaps: tuple[str, ...]
    rows: TermKey | None
    results: Mapping[str, TermKey]

    def proves_same(self, other: Form, *, one_text: bool = False) -> bool:
        """Whether both give the same rows on any data, up to the order of rows and columns.

        Args:
            one_text: Whether the engine gets one text for both; what is not understood may give
                other rows all the same.
        """
        if not (self.is_understood and other.is_understood):
            return False
        return one_text or (self.rows == other.rows and self.results == other.results)

    @property
    def is_understood(self) -> bool:
        """Whether there is nothing in the query of which it is unknown what it gives."""
        return not self.gaps and self.rows is not None

    @property
    def grouped_by(self) -> frozenset[str]:
        """The results that tell each row from every other; empty where none are known to."""
        group = self.block.group
        if group is None or group.sets or self.gaps:
            return frozenset()
        _, names = self.sealer.as_written(self.block)
        keys = {self.sealer.keys.of(term, names) for term in group.keys}
        found = {
            name: self.sealer.keys.of(term, names) for name, term in self.block.outputs.items()
        }
        if not keys <= set(found.values()):
            return frozenset()
        return frozenset(name for name, key in found.items() if key in keys)


def form_of(tree: Any, keys: Interner, new_names: Mapping[str, str] | None = None) -> Form | None:
    """The form of a query; None where it is too large to be taken apart.

    Args:
        tree: the query as the parser gives it.
        keys: shared by the forms that are to be compared.
        new_names: tables that only got another name, so that both sides call them alike.
    """
    reader, sealer = Reader(new_names or {}), Sealer(keys)
    try:
        block = reader.read(tree)
        if any("#" in name for name in block.outputs):
            reader.gap("two results of one name")
        sealed = sealer.seal(block)
    except KeyError:  # a column of a query around one that cannot see it
        reader.gap("a column from outside")
        return Form(block, reader.notes, sealer, tuple(reader.gaps), None, {})
    except (RecursionError, QueryTooLargeError):
        return None
    gaps = tuple(reader.gaps)
    return Form(block, reader.notes, sealer, gaps, sealed.rows, dict(sealed.outputs))
