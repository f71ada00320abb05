"""The entries of a policy in words; every name in them stands in code marks."""

from __future__ import annotations

from collections.abc import Iterable

from ci_bot.bot.policy.document import (
    EVERY_RULE,
    DiffEntry,
    Entry,
    IgnoreEntry,
    OwnerEntry,
    SeverityEntry,
    StatementEntry,
)

_MOST_SHOWN = 5


def said(entry: Entry) -> str:
    """What an entry says, without its reason and without a full stop."""
    if isinstance(entry, SeverityEntry):
        return f"{about(entry)} weighs {weight(entry)}"
    if isinstance(entry, IgnoreEntry):
        return f"{about(entry)} is ignored until {entry.until.isoformat()}"
    if isinstance(entry, StatementEntry):
        return f"it is allowed {allowed(entry)}"
    if isinstance(entry, DiffEntry):
        return f"{differs(entry)} is tolerated"
    if isinstance(entry, OwnerEntry):
        return f"{models(entry)} belongs to {whom(entry)}"
    raise TypeError(f"no words for {type(entry).__name__}")


def about(entry: SeverityEntry | IgnoreEntry) -> str:
    """Which findings an entry is about."""
    rules = "every rule" if EVERY_RULE in entry.rule else listed(entry.rule)
    on = f" on {models(entry)}" if entry.asks_for_models else ""
    files = f" in {listed(entry.paths)}" if entry.paths else ""
    return f"{rules}{on}{files}"


def weight(entry: SeverityEntry) -> str:
    """The severity that an entry gives."""
    if entry.severity == "off":
        return "nothing (off)"
    return f"{'at most ' if EVERY_RULE in entry.rule else ''}{entry.severity}"


def allowed(entry: StatementEntry) -> str:
    """What statements may do, after "it is allowed" or "it would be allowed"."""
    who = f" by statements of {listed(entry.models)}" if entry.models else ""
    return f"that something {' or '.join(entry.does)} {listed(entry.target)}{who}"


def differs(entry: DiffEntry) -> str:
    """The difference that an entry tolerates."""
    return f"a data diff of {entry.tolerance:.4%} of the rows of {listed(entry.models)}"


def whom(entry: OwnerEntry) -> str:
    """The accounts of an entry."""
    return " and ".join(f"`@{name}`" for name in entry.github)


def models(entry: Entry) -> str:
    """The models of an entry; "" where it is about all."""
    selected = getattr(entry, "models", None)
    owner = getattr(entry, "owner", None)
    told = listed(selected) if selected else ""
    of = f"models of {listed(owner)}" if owner else ""
    return f"{told}{' among the ' if told and of else ''}{of}"


def listed(names: Iterable[str] | None) -> str:
    """`a`, `b` and 3 more, in the order of the file."""
    every = [f"`{name}`" for name in names or ()]
    rest = len(every) - _MOST_SHOWN
    return ", ".join(every[:_MOST_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
