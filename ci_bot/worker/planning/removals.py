"""The origin of a removed model: one that prod has and the pull request's project lacks.

A model that the base branch has removed stays in prod until prod is deployed. The pull request
removes it if a file that it changes can have defined the model before. If that cannot be known, it
counts as the pull request's, because the other mistake would hide a danger.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from sqlmesh.core.snapshot import Node

_DEFINING = (".sql", ".py", ".yaml", ".yml")
# A path without an extension may be a link or a submodule, with models below it. These names are
# neither.
_PLAIN_FILES = re.compile(r"^(?:\..*|LICEN[CS]E|NOTICE|CODEOWNERS|[A-Z]\w*file)$")
# Names that are computed: of blueprints, by macros, or from the path of the file.
_COMPUTED = re.compile(r"@\{|\bblueprints\b|\bname\s+@", re.IGNORECASE)
_DECORATOR = re.compile(r"@(?:\w+\.)*model\b")
_NAMED_DECORATOR = re.compile(r"@(?:\w+\.)*model\(\s*(?:name\s*=\s*)?[\"']")


def list_removed_by_others(
    removed: Iterable[str],
    nodes: Mapping[str, Node],
    *,
    caused: Collection[str] | None,
    changed_files: Iterable[str],
    before: Callable[[str], bytes | None],
    unread: Collection[str],
) -> frozenset[str]:
    """Lists the removed models that no changed file can have defined.

    Args:
        removed: Fully qualified names of models that prod has and the project lacks.
        nodes: The project's models and audits by fully qualified name.
        caused: The models that the changed files reach; None if they may reach all.
        before: Returns the base branch's version of a changed file; None if it has none.
        unread: Changed files that are too large to be read.
    """
    if caused is None:
        return frozenset()
    texts: dict[PurePosixPath, str] = {}
    for path in changed_files:
        file = PurePosixPath(path)
        if path in unread or "\ufffd" in path:
            return frozenset()
        if not file.suffix and not _PLAIN_FILES.match(file.name):
            return frozenset()
        if file.suffix.lower() in _DEFINING and (content := before(path)) is not None:
            texts[file] = content.decode("utf-8", errors="replace")
    if any(_names_are_computed(file, text) for file, text in texts.items()):
        return frozenset()
    return frozenset(
        name
        for name in removed
        if not any(_may_define(name, file, text) for file, text in texts.items())
        and not any(name in nodes[reader].depends_on for reader in caused if reader in nodes)
    )


def list_schemas_of_models(names: Iterable[str]) -> frozenset[str]:
    """Lists the schemas, with their catalogs, of fully qualified names."""
    return frozenset(_schema_of(name) for name in names)


def is_in_foreign_schema(name: str, schemas: Collection[str]) -> bool:
    """Whether a model lies in a schema that holds none of the project's models."""
    return _schema_of(name) not in schemas


def _schema_of(name: str) -> str:
    table = exp.to_table(name)
    return f"{table.catalog}.{table.db}".lower()


def _names_are_computed(file: PurePosixPath, text: str) -> bool:
    if file.suffix.lower() == ".py":
        return len(_DECORATOR.findall(text)) != len(_NAMED_DECORATOR.findall(text)) or (
            bool(_DECORATOR.search(text)) and bool(_COMPUTED.search(text))
        )
    return file.suffix.lower() == ".sql" and bool(_COMPUTED.search(text))


def _may_define(name: str, file: PurePosixPath, text: str) -> bool:
    last = exp.to_table(name).name
    if file.stem.lower() == last.lower():
        return True  # a name may be inferred from the path
    return bool(re.search(rf"(?<!\w){re.escape(last)}(?!\w)", text, re.IGNORECASE))
