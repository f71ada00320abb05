"""Models that differ from prod's only in how a version of Python writes the same code.

SQLMesh keeps the Python code of macros and models as `ast.unparse` writes it, and the text counts
in the fingerprint. Python 3.12 and later write `f'{row['id']}'` where older ones, which cannot read
that, write `f"{row['id']}"`. So a prod that was built by another Python looks changed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlmesh.core.snapshot import Snapshot


def list_models_with_reworded_code(changed: Mapping[str, tuple[Snapshot, Snapshot]]) -> set[str]:
    """Lists the models, by fully qualified name, that are the same code, written differently.

    Args:
        changed: New and old snapshot of each model that differs.
    """
    return {name for name, (new, old) in changed.items() if is_reworded_code(new, old)}


def is_reworded_code(new: Snapshot, old: Snapshot) -> bool:
    """Whether two definitions of a model differ only in how the same code is written."""
    ours, theirs = new.node.python_env, old.node.python_env
    if ours == theirs or ours.keys() != theirs.keys():
        return False
    if not all(
        is_same_python_code(ours[name].payload, theirs[name].payload)
        and ours[name].copy(update={"payload": theirs[name].payload}) == theirs[name]
        for name in ours
    ):
        return False
    as_prod_has_it = new.node.copy(update={"python_env": theirs})
    # SQLMesh caches both hashes with the node.
    as_prod_has_it._data_hash = as_prod_has_it._metadata_hash = None
    return (as_prod_has_it.data_hash, as_prod_has_it.metadata_hash) == (
        old.node.data_hash,
        old.node.metadata_hash,
    )


def describe_reworded_code(models: Iterable[str], python: str) -> str:
    """Describes models with the same code in a review, by their names in reports.

    Args:
        python: The version of Python that this run has.
    """
    first, *more = sorted(models)
    named = f"`{first}`" + (f" and {len(more)} more" if more else "")
    return (
        f"Prod was built by another version of Python than this run's {python}: {named} is the "
        "same code in prod, written differently, and no change of this pull request. Applied from "
        "here, or by a prod run with this Python, it is built again anyway. Build prod with "
        f"Python {'.'.join(python.split('.')[:2])}, and it stays as it is."
    )


def is_same_python_code(one: str, other: str) -> bool:
    """Whether two texts are the same code; False if that cannot be known.

    If this Python parses only one of them, they may differ in the quotes around f-strings.
    """
    if one == other:
        return True
    trees = [_parse_python_code(one), _parse_python_code(other)]
    known = [tree for tree in trees if tree is not None]
    if len(known) == len(trees):
        first, second = known
        return ast.dump(first) == ast.dump(second)
    if not known or len(one) != len(other):
        return False
    text = one if trees[0] is not None else other
    different = {at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b}
    quotes = all({one[at], other[at]} == {"'", '"'} for at in different)
    return quotes and different <= set(_find_f_string_quotes(text, known[0]))


def _parse_python_code(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _find_f_string_quotes(text: str, tree: ast.Module) -> Iterator[int]:
    """Yields the positions of the single quotes that f-strings begin and end with."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr) or node.end_lineno is None:
            continue
        # Python counts the bytes of a line.
        first = lines[node.lineno - 1].encode()[: node.col_offset].decode()
        last = lines[node.end_lineno - 1].encode()[: node.end_col_offset].decode()
        begin = starts[node.lineno - 1] + len(first)
        end = starts[node.end_lineno - 1] + len(last) - 1
        opening = next((at for at in range(begin, end) if text[at] in "'\""), end)
        if text[opening] == text[end] and text[opening : opening + 3] != text[end] * 3:
            yield from (opening, end)
