"""Telling the pull request's own changes from what prod has not yet taken over from the base.

Decided from the list of changed files and the lineage, not by loading the base a second time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci_bot.contracts.base import readable_path
from ci_bot.contracts.documents.plan import ChangeType
from ci_bot.worker.project.model_files import files_of, reaches_every_model

# Read on load, and no code: what they change is a model, which is known by its own file, or none.
_DATA = (".sql", ".csv", ".tsv", ".yaml", ".yml")


@dataclass(frozen=True)
class Drift:
    """Which changed models the pull request can have caused; None where its files are unknown.

    Attributes:
        removed_by_others: Models of prod that are not in the project, and that no changed file can
            have defined. (`removals`)
    """

    caused: frozenset[str] | None
    removed_by_others: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        nodes: Mapping[str, Any],
        changed_files: Sequence[str] | None,
        repository: Path,
        opened: Collection[str] = (),
    ) -> Drift:
        """Follows the changed files through the lineage to every model that they can reach.

        Args:
            nodes: models and audits of the new project by fully qualified name.
            opened: Absolute paths of what was opened on load: a module of any place may be used by
                any model.
        """
        if changed_files is None or any(reaches_every_model(path) for path in changed_files):
            return cls(None)
        files = {readable_path(str(repository / path)) for path in changed_files}
        models = {readable_path(str(node._path)) for node in nodes.values()}
        read = files.intersection(map(readable_path, opened))
        if any(not path.endswith(_DATA) for path in read - models):
            return cls(None)
        caused = {
            name
            for name, node in nodes.items()
            if not files.isdisjoint(map(readable_path, files_of(node)))
        }
        pending = list(caused)
        readers: dict[str, list[str]] = {}
        for name, node in nodes.items():
            for parent in node.depends_on:
                readers.setdefault(parent, []).append(name)
        while pending:
            for reader in readers.get(pending.pop(), ()):
                if reader not in caused:
                    caused.add(reader)
                    pending.append(reader)
        return cls(frozenset(caused))

    def is_from_base(self, name: str, change: ChangeType, path: str | None) -> bool:
        """Whether the difference between this model and prod cannot come from the pull request."""
        if change == "removed":
            return name in self.removed_by_others
        return self.caused is not None and name not in self.caused
