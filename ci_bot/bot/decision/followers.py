"""Which changed models follow a changed model: they read it, or what reads it."""

from __future__ import annotations

from ci_bot.contracts.documents.report import Report, ReviewFacts


def followers(facts: ReviewFacts | Report) -> dict[str, set[str]]:
    """Per directly changed model, the models below it that SQLMesh lists as modified."""
    follows: dict[str, set[str]] = {}
    for above, below in facts.lineage.edges:
        follows.setdefault(above, set()).add(below)
    modified = {c.model for c in facts.changes if c.change in {"direct", "indirect"}}
    found: dict[str, set[str]] = {}
    for change in facts.changes:
        if change.change != "direct":
            continue
        seen: set[str] = set()
        queue = [change.model]
        while queue:
            for reader in follows.get(queue.pop(), ()):
                if reader in modified and reader not in seen:
                    seen.add(reader)
                    queue.append(reader)
        found[change.model] = seen
    return found
