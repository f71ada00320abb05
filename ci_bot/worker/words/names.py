"""How reports call models."""

from __future__ import annotations


class Names:
    """Model names as people write them: without quotes, and without the default catalog."""

    def __init__(self, default_catalog: str | None, dialect: str | None) -> None:
        self._prefix = f"{default_catalog}." if default_catalog else ""
        self._dialect = dialect

    def of(self, fqn: str) -> str:
        """The short name of a fully qualified one: `"cat"."db"."t"` is `db.t`."""
        name = fqn.replace('"', "")
        return name.removeprefix(self._prefix)
