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
# Those of them that say where the files are.
_PLACES = frozenset({"path", "paths", "location", "dir", "uri", "url", "warehouse"})
SHARED_PLACE = (
    "names a place for the files, which all versions of the model, those of prod and of every "
    "environment, would share"
)
# SQLMesh's own name (Athena) for a directory in which it gives each physical table one of its own.
_BASES = frozenset({"s3_base_location"})


def odd_clause(tree: Any) -> str | None:
    """What the first clause of a CREATE does that leads its files elsewhere or is not known."""
    properties = tree.args.get("properties")
    for clause in properties.expressions if properties is not None else ():
        if clause.key in _PLAIN:
            continue
        if clause.key == "property":
            odd = odd_key(clause.this if isinstance(clause.this, str) else clause.this.name)
        elif clause.key == "fileformatproperty":
            odd = odd_format(clause.name)
        elif clause.key == "languageproperty":
            odd = None if clause.name.upper() == "SQL" else f"LANGUAGE {clause.name} is a program"
        elif clause.key == "locationproperty":
            odd = f"LOCATION {SHARED_PLACE}"
        else:
            odd = f"{clause.key.removesuffix('property').upper()} is not on the list"
        if odd is not None:
            return odd
    return None


def odd_format(name: str) -> str | None:
    """Why the name of a format is no plain word: SQLMesh puts it into its SQL as it is."""
    return None if _WORD.match(name) else f"the format {name[:80]!r} is no plain word"


def odd_key(key: str) -> str | None:
    """Why a table property is no plain one: it leads somewhere, or its name is no name.

    What says where files are is the same for each version of a model, which SQLMesh keeps apart by
    the names of tables alone: to build one writes over another.
    """
    if key.lower() in _BASES:
        return None
    if not _KEY.match(key):
        return f"the property {key[:80]!r} is no plain name"
    parts = set(re.split(r"[.\-_:]", key.lower()))
    if parts & _PLACES:
        return f"the property {key} {SHARED_PLACE}"
    return f"the property {key} leads elsewhere" if parts & _LEADS else None
