"""A syntax tree that was walked once: nodes by type, for the many rules that ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Tree:
    """The nodes of one expression, in the order of a breadth-first walk."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._by_type: dict[type, list[Any]] | None = None
        self._answers: dict[tuple[type, ...], list[Any]] = {}

    def all(self, *types: type) -> list[Any]:
        """Every node of the given types or of a subtype of theirs."""
        if types not in self._answers:
            index = self._index()
            found = [known for known in index if issubclass(known, types)]
            self._answers[types] = [node for known in found for node in index[known]]
        return self._answers[types]

    def has(self, *types: type) -> bool:
        """Whether there is any such node."""
        return bool(self.all(*types))

    def _index(self) -> dict[type, list[Any]]:
        if self._by_type is None:
            self._by_type = {}
            for node in _walk(self.root):
                self._by_type.setdefault(type(node), []).append(node)
        return self._by_type


def _walk(root: Any) -> Iterator[Any]:
    if root is None:
        return
    queue = [root]
    for node in queue:
        yield node
        queue.extend(node.iter_expressions())
