"""How reports call models and files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from ci_bot.contracts.base import readable_path

_QUOTE = '[`"]?'


class Versioned(Protocol):
    """A snapshot with a version, or what the state keeps of one."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str | None: ...

    @property
    def dev_version(self) -> str: ...

    def table_name(self, is_deployable: bool = True) -> str:
        """Its physical table."""
        ...


class Names:
    """Model names as people write them: without quotes, and without the default catalog.

    This is the one place that says how a model is called, in changes, findings, sentences and the
    ledger. Models of another catalog keep it, so no two models have one name.
    """

    def __init__(self, default_catalog: str | None, dialect: str | None) -> None:
        self._prefix = f"{default_catalog}." if default_catalog else ""
        catalog = re.escape(default_catalog or "")
        # Not inside of another name, and not at the beginning of a literal.
        self._inside = re.compile(
            rf"(?<![\w.`\"']){_QUOTE}{catalog}{_QUOTE}\.(?=[\w`\"])", re.IGNORECASE
        )
        self._tables: dict[tuple[str, str | None, str, bool], str] = {}

    def of(self, fqn: str) -> str:
        """The short name of a fully qualified one: `"cat"."db"."t"` is `db.t`."""
        name = fqn.replace('"', "").replace("`", "")
        # Tables that a query reads are told in lower case, whatever the catalog's own is.
        same = name[: len(self._prefix)].lower() == self._prefix.lower()
        return name[len(self._prefix) :] if same else name

    def table(self, snapshot: Versioned, *, deployable: bool) -> str:
        """The short name of a snapshot's physical table; `deployable`: the one that prod reuses.

        A report names each up to eight times, and SQLMesh parses and writes SQL for it each time.
        """
        key = (snapshot.name, snapshot.version, snapshot.dev_version, deployable)
        if key not in self._tables:
            self._tables[key] = self.of(snapshot.table_name(deployable))
        return self._tables[key]

    def within(self, text: str) -> str:
        """A text, SQL or ours, with the models that it names called so."""
        return self._inside.sub("", text) if self._prefix else text


def file_name(path: Path, repository: Path) -> str:
    """A file relative to the repository; one that lies elsewhere by its whole path."""
    inside = path.is_relative_to(repository)
    return readable_path(str(path.relative_to(repository)) if inside else str(path))


def file_name_or_last(path: Path | str | None, repository: Path) -> str | None:
    """The same, but of one that lies elsewhere the last part alone; None where there is none."""
    if path is None:
        return None
    path = Path(path)
    return file_name(path, repository) if path.is_relative_to(repository) else path.name
