"""Which page explains a rule."""

from __future__ import annotations

import re

FOLDER = "docs/rules"
_NUMBERED = re.compile(r"^(R\d\d)\b")
_MATRIX = frozenset(
    {"additive-change", "base-drift", "lint-warning", "logic-changed-forward-only", "metadata-only",
     "prod-gaps"}
)  # fmt: skip


def page_of(rule: str) -> str:
    """The page of `rule`, relative to the package: one for each rule of findings and plans."""
    numbered = _NUMBERED.match(rule)
    if numbered:
        return f"{FOLDER}/{numbered.group(1)}.md"
    return f"{FOLDER}/{'matrix' if rule in _MATRIX else rule}.md"
