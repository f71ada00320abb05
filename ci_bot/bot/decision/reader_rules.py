"""R04 and exposures: what the readers of a model lose by a change, and whom to ask."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ci_bot.bot import report as reports
from ci_bot.bot.decision.risks import BotFacts, TeamLimits, count_noun, judges, make_risk
from ci_bot.bot.policy import PolicyExposure
from ci_bot.bot.report import judge_past_numbers, list_new_columns_of_impact
from ci_bot.protocol.plan import Change, ColumnChange
from ci_bot.protocol.review_report import ChangedPart, ReviewFacts, Risk
from ci_bot.protocol.rules import READ_NO_MORE, RULES, find_rule, quote_name, quote_names

EXPOSURE_AFFECTED = find_rule("exposure-affected")

ColumnEffect = Literal["dropped", "retyped", "computed"]

_COLUMNS_SHOWN = 5
# The heaviest first: a column gets only the heaviest effect.
_EFFECTS: tuple[ColumnEffect, ...] = ("dropped", "retyped", "computed")


@dataclass
class JudgedModelChange:
    """What a change does to one model, by its columns.

    Attributes:
        columns: the changed ones, each with the heaviest effect.
        types: of the retyped ones, before and after.
        replaced_by: a new column with the type of the dropped one, if only one is dropped.
        removed: whether the model goes away.
        rows: whether it gets other rows, which changes all of its columns.
        reordered: whether its columns change their order.
        unknown: whether it is unknown what changes in it.
    """

    columns: dict[str, ColumnEffect] = field(default_factory=dict)
    types: dict[str, tuple[str, str]] = field(default_factory=dict)
    replaced_by: str | None = None
    removed: bool = False
    rows: bool = False
    reordered: bool = False
    unknown: bool = False

    def add_effect(self, column: str, effect: ColumnEffect) -> None:
        """Records an effect, unless a heavier one is known."""
        known = self.columns.get(column)
        if known is None or _EFFECTS.index(effect) < _EFFECTS.index(known):
            self.columns[column] = effect

    def select_effects(self, columns: Sequence[str] | None) -> dict[str, ColumnEffect]:
        """Returns the effects on some columns; None: on all."""
        return {
            name: effect
            for name, effect in self.columns.items()
            if columns is None or name in columns
        }


def map_changed_models(facts: ReviewFacts) -> dict[str, JudgedModelChange]:
    """Maps each model that the pull request itself changes or reaches to what happens to it.

    The column impact decides. A model that it has proved to read no change is missing.
    """
    found: dict[str, JudgedModelChange] = {}
    drift = {change.model for change in facts.changes if change.from_base}
    # A declaration of somebody else's table changes nothing in that table.
    declared = {change.model for change in facts.changes if change.kind == "EXTERNAL"}
    new = list_new_columns_of_impact(facts.impact)
    for part in facts.impact.changed:
        if part.model in drift:
            continue
        if part.model not in declared:
            _add_part_to_change(found.setdefault(part.model, JudgedModelChange()), part)
        for reached in part.reached:
            model = found.setdefault(reached.model, JudgedModelChange())
            if part.how == "unknown":
                model.unknown = True
                continue
            model.rows |= reached.rows
            model.unknown |= bool(reached.more_columns)
            for name in reached.columns:
                if part.how != "added" or name not in new:
                    model.add_effect(name, "computed")
    for change in facts.changes:
        if change.model not in drift | declared:
            _add_columns_to_change(found, change)
    _add_unknown_to_change(found, facts, drift | declared)
    return found


def _add_part_to_change(model: JudgedModelChange, part: ChangedPart) -> None:
    if part.column is None:
        model.rows |= part.how == "rows"
        model.unknown |= part.how == "unknown"
    elif part.how in ("dropped", "retyped", "computed"):
        model.add_effect(part.column.lower(), part.how)
    model.reordered |= part.how == "reordered"


def _add_columns_to_change(found: dict[str, JudgedModelChange], change: Change) -> None:
    """Adds what both definitions say about columns, also if the model only follows another."""
    if change.change == "removed":
        found.setdefault(change.model, JudgedModelChange()).removed = True
        return
    lost = [column for column in change.columns if column.before is not None]
    if not lost:
        return
    model = found.setdefault(change.model, JudgedModelChange())
    for column in lost:
        model.add_effect(column.name.lower(), "dropped" if column.after is None else "retyped")
        if column.before is not None and column.after is not None:
            model.types[column.name.lower()] = (column.before, column.after)
    dropped = [column.before for column in lost if column.after is None]
    new = [column for column in change.columns if column.before is None]
    if len(dropped) == 1 and len(new) == 1 and new[0].after == dropped[0]:
        model.replaced_by = new[0].name


def _add_unknown_to_change(
    found: dict[str, JudgedModelChange], facts: ReviewFacts, left_out: set[str]
) -> None:
    names = {item.model for item in facts.impact.indirect if item.reached == "unknown"}
    names |= {item.model for item in judge_past_numbers(facts).changed if item.model not in found}
    cut = facts.impact.more_changed or any(part.more_models for part in facts.impact.changed)
    if cut or facts.impact.more_indirect:
        proved = {item.model for item in facts.impact.indirect if item.reached == "no"}
        changed = {c.model for c in facts.changes if c.change in ("direct", "indirect")}
        names |= changed - proved - found.keys()
    for name in names - left_out:
        model = found.setdefault(name, JudgedModelChange())
        model.unknown |= not (model.columns or model.rows)


@dataclass(frozen=True)
class ReaderAtRisk:
    """An exposure that reads a changed model, and the columns of it that it reads."""

    exposure: PolicyExposure
    model: str
    columns: tuple[str, ...] | None

    def is_affected(self, changed: JudgedModelChange) -> bool:
        """Whether a change of what it reads is known."""
        return bool(changed.removed or changed.rows or changed.select_effects(self.columns))

    def may_be_affected(self, changed: JudgedModelChange) -> bool:
        """Whether what it reads may change: it cannot be read, or all columns are reordered."""
        return changed.unknown or (changed.reordered and self.columns is None)


def list_readers_at_risk(facts: ReviewFacts, bot: BotFacts) -> list[ReaderAtRisk]:
    """Lists who reads which model from outside of the project, by the base commit's policy."""
    models = {answer.name: answer.model for answer in facts.exposed}
    return [
        ReaderAtRisk(exposure, model, columns)
        for exposure in bot.weighing.policy.exposures
        for name, columns in exposure.reads.items()
        if (model := models.get(name)) is not None
    ]


def name_readers_at_risk(
    facts: ReviewFacts, bot: BotFacts, model: str, columns: Sequence[str] = ()
) -> list[str]:
    """Names the exposures that read a model, or one of some columns of it."""
    return sorted(
        {
            reader.exposure.name.replace("`", "'")
            for reader in list_readers_at_risk(facts, bot)
            if reader.model == model
            and (not columns or reader.columns is None or {*columns} & {*reader.columns})
        }
    )


@judges(EXPOSURE_AFFECTED)
def find_risks_of_affected_exposures(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """Readers outside of the project whose columns are removed, change, or may change."""
    readers = list_readers_at_risk(facts, bot)
    if not readers:
        return
    changed = map_changed_models(facts)
    paths = {change.model: change.path for change in facts.changes}
    for reader in readers:
        model = changed.get(reader.model)
        if model is None or not (reader.is_affected(model) or reader.may_be_affected(model)):
            continue
        yield make_risk(
            EXPOSURE_AFFECTED,
            f"{quote_name(reader.exposure.name)} of {reader.exposure.owners or 'nobody'} "
            f"{_describe_reading(reader)}: {_describe_effects(reader, model)}.",
            "the owner of each reader has agreed, or what they read stays as it is",
            severity=None if reader.is_affected(model) else "medium",
            subject=reader.exposure.name,
            model=reader.model,
            path=paths.get(reader.model),
        )


def _describe_reading(reader: ReaderAtRisk) -> str:
    if reader.columns is None:
        return "reads all columns"
    if not reader.columns:
        return "reads which rows there are"
    return f"reads {_name_columns_read_outside(reader.columns)}"


def _describe_effects(reader: ReaderAtRisk, changed: JudgedModelChange) -> str:
    if changed.removed:
        return "the model goes away"
    effects = changed.select_effects(reader.columns)
    phrases = [
        _describe_effect(effect, names, changed)
        for effect in _EFFECTS
        if (names := sorted(name for name, found in effects.items() if found == effect))
    ]
    if changed.rows:
        phrases.append("the model has other rows")
    if changed.unknown:
        phrases.append("what of the model changes cannot be read from its code")
    if changed.reordered and reader.columns is None:
        phrases.append("the columns change their order")
    return ", ".join(phrases)


def _describe_effect(effect: ColumnEffect, names: Sequence[str], changed: JudgedModelChange) -> str:
    one = len(names) == 1
    shown = _name_columns_read_outside(names)
    if effect == "dropped":
        new = changed.replaced_by
        instead = f" ({quote_name(new)} of the same type is new)" if one and new else ""
        return f"{shown} {'goes' if one else 'go'} away{instead}"
    if effect == "retyped":
        before, after = changed.types.get(names[0], ("", ""))
        types = f" ({quote_name(before)} to {quote_name(after)})" if one and before else ""
        return f"{shown} {'gets another type' if one else 'get other types'}{types}"
    return f"{shown} {'has' if one else 'have'} other values"


def _name_columns_read_outside(names: Sequence[str]) -> str:
    shown = ", ".join(map(quote_name, names[:_COLUMNS_SHOWN]))
    rest = len(names) - _COLUMNS_SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown


PLANNED_FROM_BASE = "prod is planned from the base branch"
_MEANT_TO_GO = "someone confirms that all of these models are meant to go"
COLUMN_DROPPED = find_rule("R04-column-dropped")
UNKNOWN_OUTSIDE = "readers outside are not known"
MASS_REMOVAL = find_rule("R04-mass-removal")
MODEL_REMOVED = find_rule("R04-model-removed")
RENAMED = RULES["model-renamed"].id  # the worker compares the definitions

# At least this many models are removed at once, and are half of the project or whole schemas.
MANY = 5


@judges(MASS_REMOVAL, MODEL_REMOVED)
def find_risks_of_removals(facts: ReviewFacts, limits: TeamLimits, bot: BotFacts) -> Iterator[Risk]:
    """R04: models that are removed, one or many at once."""
    # A renamed model is reported as renamed, and its readers by `removed-model-read`.
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
    elif len(whole := _list_removals_in_emptied_schemas(removed, moved)) >= MANY:
        schemas = sorted({change.model.rpartition(".")[0] for change in whole})
        yield make_risk(
            MASS_REMOVAL,
            f"{count_noun(len(whole), 'model')} of {before} go away, which are all of the "
            f"{'schema' if len(schemas) == 1 else 'schemas'} {quote_names(schemas)} "
            f"({quote_names(change.model for change in whole)}): an ignore pattern, a changed "
            "catalog or a directory that is not found looks like this.",
            _MEANT_TO_GO,
        )
        removed = [change for change in removed if change not in whole or change.readers]
    for change in removed:
        if change.model not in moved or change.readers:
            yield _make_risk_of_removal(change, name_readers_at_risk(facts, bot, change.model))
    for change in every:
        if change.from_base:
            yield _make_risk_of_foreign_removal(change)


def _list_removals_in_emptied_schemas(
    removed: Iterable[Change], moved: Container[str | None]
) -> list[Change]:
    """Lists removed models in whose schema no model is left."""
    return [c for c in removed if c.lies_elsewhere and c.model not in moved]


def _make_risk_of_foreign_removal(change: Change) -> Risk:
    """Makes the risk of a model that prod has, but that no changed file has defined."""
    read = (
        f" {quote_names(change.readers)} still {_choose_verb_of_readers(change)} it."
        if change.readers
        else ""
    )
    if change.lies_elsewhere:
        return make_risk(
            MODEL_REMOVED,
            "Prod has this model and the project does not; this pull request does not change that. "
            "No model of the project is in its schema: if another project on the same state "
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


def _choose_verb_of_readers(change: Change) -> str:
    return "reads" if len(change.readers) == 1 else "read"


def _make_risk_of_removal(change: Change, outside: Sequence[str]) -> Risk:
    if change.readers:
        return make_risk(
            MODEL_REMOVED,
            f"The model is removed, and {quote_names(change.readers)} still "
            f"{_choose_verb_of_readers(change)} it.",
            READ_NO_MORE,
            severity="blocker",
            model=change.model,
            path=change.path,
        )
    return make_risk(
        MODEL_REMOVED,
        f"The model is removed. No model of the project reads it; "
        f"{_describe_outside_readers(outside)}.",
        "the readers outside of the project do not use it any more, or it stays"
        if outside
        else "its owner confirms that nobody outside the project reads it",
        model=change.model,
        path=change.path,
    )


@judges(COLUMN_DROPPED)
def find_risks_of_column_changes(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """R04: columns that are dropped or get another type."""
    for change in facts.changes:
        if change.change == "removed" or change.from_base:
            continue
        dropped = [column for column in change.columns if column.after is None]
        read = [column for column in dropped if column.readers]
        unread = [column for column in dropped if not column.readers]
        if read:
            yield _make_risk_of_dropped_read_columns(change, read)
        if unread:
            names = [column.name.lower() for column in unread]
            outside = name_readers_at_risk(facts, bot, change.model, names)
            yield _make_risk_of_dropped_unread_columns(change, unread, outside)
        # The worker distinguishes narrowing from widening, because it knows the types as types. It
        # reports that as the finding `column-retyped`.


def _make_risk_of_dropped_read_columns(change: Change, read: list[ColumnChange]) -> Risk:
    readers = {reader for column in read for reader in column.readers}
    return make_risk(
        COLUMN_DROPPED,
        f"Drops {quote_names(c.name for c in read)}, still read by {quote_names(readers)}.",
        "the readers no longer use the column, or it stays"
        if len(read) == 1
        else "the readers no longer use the columns, or the columns stay",
        subject=_join_changed_columns(read),
        severity="blocker",
        model=change.model,
        path=change.path,
    )


def _describe_outside_readers(readers: Sequence[str]) -> str:
    """Describes who reads it outside of the project, by the policy's exposures."""
    if not readers:
        return UNKNOWN_OUTSIDE
    return f"outside of it, {quote_names(readers)} {'reads' if len(readers) == 1 else 'read'} it"


def _make_risk_of_dropped_unread_columns(
    change: Change, unread: list[ColumnChange], outside: Sequence[str]
) -> Risk:
    own, it = change.change == "direct", "it" if len(unread) == 1 else "them"
    return make_risk(
        COLUMN_DROPPED,
        # A model that only follows the one above is judged there.
        f"Drops {quote_names(c.name for c in unread)}. "
        f"{reports.SENTENCES.known_readers.capitalize()} {it}; "
        f"{_describe_outside_readers(outside)}.",
        f"the readers outside of the project use {it} no longer"
        if outside
        else f"the owner confirms that nobody outside the project reads {it}",
        severity=None if own else "low",
        subject=_join_changed_columns(unread),
        model=change.model,
        path=change.path,
    )


def _join_changed_columns(changes: list[ColumnChange]) -> str:
    return ", ".join(sorted(change.name for change in changes))
