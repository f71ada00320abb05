"""What stands between CREATE and AS: clauses that say where a table's files are, and others."""

from __future__ import annotations

import re
from typing import Any

# Clauses of CREATE that add nothing to what the statement's name says.
_PLAIN = frozenset(
    {
        "temporaryproperty", "globalproperty", "schemacommentproperty", "partitionedbyproperty",
        "clusteredbyproperty", "returnsproperty", "icebergproperty", "transientproperty",
        "materializedproperty", "clusterproperty", "cluster", "partitionbyrangeproperty",
        "partitionedbybucket", "withdataproperty", "likeproperty",
    }
)  # fmt: skip
_WORD = re.compile(r"^\w+$")
_KEY = re.compile(r"^[\w.\-:]+$")
# A property that leads a table's files, or the code that writes them, somewhere.
_LEADS = frozenset(
    {"path", "paths", "location", "dir", "uri", "url", "impl", "class", "provider", "external",
     "catalog", "warehouse", "serde", "committer"}
)  # fmt: skip
# SQLMesh's own name (Athena) for a directory in which it gives each physical table one of its own.
_BASES = frozenset({"s3_base_location"})


def odd_clause(tree: Any) -> str | None:
    """The first clause of a CREATE that leads its files elsewhere or that we do not know."""
    properties = tree.args.get("properties")
    for clause in properties.expressions if properties is not None else ():
        if clause.key in _PLAIN:
            continue
        if clause.key == "property":
            odd = odd_key(clause.this if isinstance(clause.this, str) else clause.this.name)
        elif clause.key == "fileformatproperty":
            odd = odd_format(clause.name)
        elif clause.key == "languageproperty":
            odd = None if clause.name.upper() == "SQL" else f"LANGUAGE {clause.name}"
        else:
            odd = clause.key.removesuffix("property").upper()
        if odd is not None:
            return odd
    return None


def odd_format(name: str) -> str | None:
    """Why the name of a format is no plain word: SQLMesh puts it into its SQL as it is."""
    return None if _WORD.match(name) else f"the format {name[:80]!r}"


def odd_key(key: str) -> str | None:
    """Why a table property is no plain one: it leads somewhere, or its name is no name."""
    if key.lower() in _BASES:
        return None
    if not _KEY.match(key):
        return f"the property {key[:80]!r}"
    parts = set(re.split(r"[.\-_:]", key.lower()))
    return f"the property {key}" if parts & _LEADS else None
