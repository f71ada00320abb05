"""How reports write models and files.

Each worker imports it before it knows its request, so this module does not import SQLMesh.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from ci_bot.protocol.base import replace_undecodable_bytes

_QUOTE = '[`"]?'


class VersionedInMessages(Protocol):
    """A snapshot with a version, or the state's record of one."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str | None: ...

    @property
    def dev_version(self) -> str: ...

    def table_name(self, is_deployable: bool = True) -> str:
        """Returns the name of its physical table."""
        ...


class MessageNames:
    """Model names as people write them: without quotes, and without the default catalog.

    Only this class names models, in changes, findings, sentences and the ledger. Models of another
    catalog keep their catalog, so no two models share a name.
    """

    def __init__(self, default_catalog: str | None, dialect: str | None) -> None:
        self._prefix = f"{default_catalog}." if default_catalog else ""
        catalog = re.escape(default_catalog or "")
        # Not inside of another name, and not at the beginning of a literal.
        self._inside = re.compile(
            rf"(?<![\w.`\"']){_QUOTE}{catalog}{_QUOTE}\.(?=[\w`\"])", re.IGNORECASE
        )
        self._tables: dict[tuple[str, str | None, str, bool], str] = {}

    def short_name(self, fqn: str) -> str:
        """Returns the short name of a fully qualified one: `"cat"."db"."t"` is `db.t`."""
        name = fqn.replace('"', "").replace("`", "")
        # SQLMesh lists the tables that a query reads in lower case, whatever the catalog's case.
        same = name[: len(self._prefix)].lower() == self._prefix.lower()
        return name[len(self._prefix) :] if same else name

    def table_name(self, snapshot: VersionedInMessages, *, deployable: bool) -> str:
        """Returns the short name of a snapshot's physical table; `deployable`: the one that prod
        reuses.

        A report names each up to eight times, and SQLMesh parses and writes SQL for it each time,
        so the names are kept.
        """
        key = (snapshot.name, snapshot.version, snapshot.dev_version, deployable)
        if key not in self._tables:
            self._tables[key] = self.short_name(snapshot.table_name(deployable))
        return self._tables[key]

    def shorten_in_text(self, text: str) -> str:
        """Shortens the model names in a text: in SQL, or in a sentence of ours."""
        return self._inside.sub("", text) if self._prefix else text


def name_file_in_message(path: Path, repository: Path) -> str:
    """Returns a file relative to the repository, or its whole path if it is elsewhere."""
    inside = path.is_relative_to(repository)
    return replace_undecodable_bytes(str(path.relative_to(repository)) if inside else str(path))


def name_file_in_message_or_last_part(path: Path | str | None, repository: Path) -> str | None:
    """Returns a file relative to the repository, or its last part if it is elsewhere; None for
    None.
    """
    if path is None:
        return None
    path = Path(path)
    return name_file_in_message(path, repository) if path.is_relative_to(repository) else path.name
