"""R04: models and columns that go away, and that others may read."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from ci_bot.bot import report as reports
from ci_bot.bot.decision.exposure_rules import name_readers
from ci_bot.bot.decision.planned_work import BotFacts, TeamLimits
from ci_bot.bot.decision.risks import count_noun, judges, make_risk, quote_names
from ci_bot.protocol.plan import Change, ColumnChange
from ci_bot.protocol.review_report import ReviewFacts, Risk
from ci_bot.protocol.rules import READ_NO_MORE, RULES, find_rule

PLANNED_FROM_BASE = "prod is planned from the base branch"

_MEANT_TO_GO = "someone confirms that all of these models are meant to go"

COLUMN_DROPPED = find_rule("R04-column-dropped")
UNKNOWN_OUTSIDE = "readers outside are not known"
MASS_REMOVAL = find_rule("R04-mass-removal")
MODEL_REMOVED = find_rule("R04-model-removed")

RENAMED = RULES["model-renamed"].id  # the worker compares the definitions

# As many models go at once, and they are half of the project or all that is in their schemas.
MANY = 5


@judges(MASS_REMOVAL, MODEL_REMOVED)
def find_removals(facts: ReviewFacts, limits: TeamLimits, bot: BotFacts) -> Iterator[Risk]:
    """R04: models that go away, one by one or many at once."""
    # A model that got another name is told as that, and its readers by `removed-model-read`.
    moved = {f.model for f in facts.findings if f.rule == RENAMED}
    every = [c for c in facts.changes if c.change == "removed"]
    removed = [c for c in every if not c.from_base]
    added = sum(c.change == "added" for c in facts.changes)
    before = facts.project.models - added + len(removed)
    if len(removed) >= MANY and 2 * len(removed) >= before:
        yield make_risk(
            MASS_REMOVAL,
            f"{count_noun(len(removed), 'model')} of {before} go away, "
            f"{count_noun(added, 'model')} are "
            "new: a changed catalog, project key, ignore pattern or directory looks like this.",
            _MEANT_TO_GO,
        )
        removed = [change for change in removed if change.readers]
    elif len(whole := _list_in_emptied_schemas(removed, moved)) >= MANY:
        schemas = sorted({change.model.rpartition(".")[0] for change in whole})
        yield make_risk(
            MASS_REMOVAL,
            f"{count_noun(len(whole), 'model')} of {before} go away, which are all of the "
            f"{'schema' if len(schemas) == 1 else 'schemas'} {quote_names(schemas)} "
            f"({quote_names(change.model for change in whole)}): an ignore pattern, a changed "
            "catalog "
            "or a directory that is not found looks like this.",
            _MEANT_TO_GO,
        )
        removed = [change for change in removed if change not in whole or change.readers]
    for change in removed:
        if change.model not in moved or change.readers:
            yield _make_removal_risk(change, name_readers(facts, bot, change.model))
    for change in every:
        if change.from_base:
            yield _make_foreign_removal(change)


def _list_in_emptied_schemas(
    removed: Iterable[Change], moved: Container[str | None]
) -> list[Change]:
    """Removed models in whose schema no model is left."""
    return [c for c in removed if c.lies_elsewhere and c.model not in moved]


def _make_foreign_removal(change: Change) -> Risk:
    """Prod has the model, and no file that this pull request changes has defined it."""
    read = (
        f" {quote_names(change.readers)} still {_describe_readers(change)} it."
        if change.readers
        else ""
    )
    if change.lies_elsewhere:
        return make_risk(
            MODEL_REMOVED,
            "Prod has this model and the project does not; this pull request does not change that. "
            "No model of the project lies in its schema: if another project on the same state "
            f"defines it, planning prod from here removes it there.{read}",
            "each project on the state has a `project:` key of its own, or prod is planned from "
            "the base branch that has removed the model",
            model=change.model,
        )
    return make_risk(
        MODEL_REMOVED,
        "The base branch has removed this model, and prod still has it; this pull request does not "
        f"change that. The next plan of prod removes it.{read}",
        PLANNED_FROM_BASE,
        severity="high" if change.readers else "medium",
        model=change.model,
    )


def _describe_readers(change: Change) -> str:
    return "reads" if len(change.readers) == 1 else "read"


def _make_removal_risk(change: Change, outside: Sequence[str]) -> Risk:
    if change.readers:
        return make_risk(
            MODEL_REMOVED,
            f"The model is removed, and {quote_names(change.readers)} still "
            f"{_describe_readers(change)} it.",
            READ_NO_MORE,
            severity="blocker",
            model=change.model,
            path=change.path,
        )
    return make_risk(
        MODEL_REMOVED,
        f"The model is removed. No model of the project reads it; {_describe_outside(outside)}.",
        "the readers outside of the project use it no longer, or it stays"
        if outside
        else "its owner confirms that nobody outside the project reads it",
        model=change.model,
        path=change.path,
    )


@judges(COLUMN_DROPPED)
def find_column_changes(facts: ReviewFacts, limits: TeamLimits, bot: BotFacts) -> Iterator[Risk]:
    """R04: columns that are dropped or get another type."""
    for change in facts.changes:
        if change.change == "removed" or change.from_base:
            continue
        dropped = [column for column in change.columns if column.after is None]
        read = [column for column in dropped if column.readers]
        unread = [column for column in dropped if not column.readers]
        if read:
            yield _judge_dropped_columns(change, read)
        if unread:
            names = [column.name.lower() for column in unread]
            outside = name_readers(facts, bot, change.model, names)
            yield _make_dropped_risk(change, unread, outside)
        # Narrowing is told apart from widening where the types are known as types: in the worker.
        # It arrives as the finding `column-retyped`.


def _judge_dropped_columns(change: Change, read: list[ColumnChange]) -> Risk:
    readers = {reader for column in read for reader in column.readers}
    return make_risk(
        COLUMN_DROPPED,
        f"Drops {quote_names(c.name for c in read)}, still read by {quote_names(readers)}.",
        "the readers no longer use the column, or it stays"
        if len(read) == 1
        else "the readers no longer use the columns, or the columns stay",
        subject=_list_columns(read),
        severity="blocker",
        model=change.model,
        path=change.path,
    )


def _describe_outside(readers: Sequence[str]) -> str:
    """Who reads it outside of the project, as far as the policy's exposures say."""
    if not readers:
        return UNKNOWN_OUTSIDE
    return f"outside of it, {quote_names(readers)} {'reads' if len(readers) == 1 else 'read'} it"


def _make_dropped_risk(change: Change, unread: list[ColumnChange], outside: Sequence[str]) -> Risk:
    own, it = change.change == "direct", "it" if len(unread) == 1 else "them"
    return make_risk(
        COLUMN_DROPPED,
        # A model that only follows the one above it is judged there.
        f"Drops {quote_names(c.name for c in unread)}. "
        f"{reports.SENTENCES.known_readers.capitalize()} {it}; {_describe_outside(outside)}.",
        f"the readers outside of the project use {it} no longer"
        if outside
        else f"the owner confirms that nobody outside the project reads {it}",
        severity=None if own else "low",
        subject=_list_columns(unread),
        model=change.model,
        path=change.path,
    )


def _list_columns(changes: list[ColumnChange]) -> str:
    return ", ".join(sorted(change.name for change in changes))
