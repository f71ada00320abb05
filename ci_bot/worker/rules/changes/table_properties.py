"""Properties of stored tables that change more than speed: how long old versions are kept, who can
read the table, what it refuses, where its files are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.rules.statement_rules import model_statements

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

PROPERTIES = find_rule("table-property-changed")

PropertyEffect = Literal["history", "readers", "feed", "guard", "writers", "place", "purge", "text"]
_MEANINGS: Mapping[PropertyEffect, str] = {
    "history": "old versions of the table are deleted sooner, so nobody can read or restore them",
    "readers": "programs that read the table today may not be able to read it any more",
    "feed": "programs that follow the table's change feed get nothing any more",
    "guard": "the table takes rows, or loses rows, where it refused that",
    "writers": "two writers at one time may leave other rows",
    "place": "files of the table go to another place, which versions and environments may share",
    "purge": "it decides whether files are deleted with the table",
    "text": "stored text is read as other values",
}


@dataclass(frozen=True)
class _KnownProperty:
    """A property, or a family of them.

    Attributes:
        harmless: the value, in lower case, that takes nothing from anybody; "more" if that is any
            larger amount.
        default: what counts if nobody sets it.
    """

    name: re.Pattern[str]
    effect: PropertyEffect
    harmless: str = ""
    default: str = ""


def _define_property(
    name: str, effect: PropertyEffect, harmless: str = "", default: str = ""
) -> _KnownProperty:
    return _KnownProperty(re.compile(name, re.IGNORECASE), effect, harmless, default)


# Delta (docs.delta.io, "Table properties reference"), Iceberg (iceberg.apache.org,
# "Configuration"), Hudi ("All configurations"), Hive's and Spark's own. What is not listed here is
# about sizes, statistics, compression and the like.
_KNOWN = (
    _define_property(r"delta\.deletedFileRetentionDuration", "history", "more", "interval 1 week"),
    _define_property(r"delta\.logRetentionDuration", "history", "more", "interval 30 days"),
    _define_property(r"delta\.enableExpiredLogCleanup", "history", "false", "true"),
    _define_property(r"delta\.appendOnly", "guard", default="false"),
    _define_property(r"delta\.constraints\..+", "guard"),
    _define_property(r"delta\.isolationLevel", "writers", "serializable"),
    _define_property(r"delta\.enableChangeDataFeed", "feed", "true", "false"),
    _define_property(
        r"delta\.(min(Reader|Writer)Version|feature\..+|columnMapping\..+)", "readers"
    ),
    _define_property(
        r"delta\.(enableDeletionVectors|enableRowTracking)", "readers", "false", "false"
    ),
    _define_property(r"delta\.universalFormat\..+", "readers"),
    _define_property(r"history\.expire\.max-(snapshot|ref)-age-ms", "history", "more", "432000000"),
    _define_property(r"history\.expire\.min-snapshots-to-keep", "history", "more", "1"),
    _define_property(r"write\.metadata\.delete-after-commit\.enabled", "history", "false", "false"),
    _define_property(r"write\.metadata\.previous-versions-max", "history", "more", "100"),
    _define_property(r"format-version", "readers"),
    _define_property(r"write\.spark\.accept-any-schema", "guard", "false", "false"),
    _define_property(r"write\.(delete|update|merge)\.isolation-level", "writers", "serializable"),
    _define_property(
        r"write\.(data|metadata|object-storage|folder-storage)\.(path|location)", "place"
    ),
    _define_property(r"gc\.enabled", "purge", "false", "true"),
    _define_property(r"hoodie\.(cleaner|keep)\..*(retained|commits).*", "history", "more"),
    _define_property(r"hoodie\..*(recordkey|precombine|ordering)\..+", "writers"),
    _define_property(r"external\.table\.purge", "purge", "false", "false"),
    _define_property(r"serialization\.null\.format|(field|line|escape)\.delim", "text"),
    _define_property(r"skip\.(header|footer)\..+", "text"),
)
_IN_STATEMENT = re.compile(
    r"\b(UN)?SET\s+TBLPROPERTIES\s*(?:IF\s+EXISTS\s*)?\(([^)]*)\)", re.IGNORECASE
)
_PAIR = re.compile(
    r"""(?:'([^']+)'|"([^"]+)"|`?([\w.\-]+)`?)\s*(?:=\s*('[^']*'|"[^"]*"|[\w.\-]+))?"""
)
_AMOUNT = re.compile(r"(?:interval\s+)?(\d+)\s*([a-z]*?)s?", re.IGNORECASE)
_HOURS = {"": 1.0, "minute": 1 / 60, "hour": 1.0, "day": 24.0, "week": 168.0}


@on_change(PROPERTIES)
def find_property_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Properties of the MODEL block, and of `TBLPROPERTIES` in the statements around the query."""
    before, after = read_properties(pair.before), read_properties(pair.after)
    found: dict[PropertyEffect, list[str]] = {}
    for name in sorted(before.keys() | after.keys()):
        known = next((one for one in _KNOWN if one.name.fullmatch(name)), None)
        if known is None:
            continue
        old, new = before.get(name, known.default), after.get(name, known.default)
        if old.lower() != new.lower() and not _takes_nothing(known, old, new):
            was, now = before.get(name, "its default"), after.get(name, "its default")
            found.setdefault(known.effect, []).append(f"`{name}` from {was} to {now}")
    for effect, told in found.items():
        yield RuleObservation(
            PROPERTIES,
            f"{', '.join(told)}: {_MEANINGS[effect]}.",
            "the owner of the table confirms it",
            model=pair.after,
            subject=(effect,),
            anchors=(*(one.split("`")[1] for one in told), "physical_properties"),
        )


def read_properties(model: Model) -> dict[str, str]:
    """The table properties that a model sets, by name; without quotes."""
    found = {
        name: value.name if isinstance(value, exp.Literal) else value.sql().strip("'")
        for name, value in model.physical_properties.items()
    }
    for _, text in model_statements(model):
        for is_unset, part in _IN_STATEMENT.findall(text):
            for one, other, plain, value in _PAIR.findall(part):
                if is_unset:
                    found.pop(one or other or plain, None)
                else:
                    found[one or other or plain] = value.strip("'\"")
    return found


def _takes_nothing(known: _KnownProperty, old: str, new: str) -> bool:
    if known.harmless == "more":
        was, now = _read_amount(old), _read_amount(new)
        return was is not None and now is not None and now >= was
    return bool(known.harmless) and new.lower() == known.harmless


def _read_amount(text: str) -> float | None:
    """A number, in hours where it is a time; None where it is written in another way."""
    found = _AMOUNT.fullmatch(text.strip())
    hours = _HOURS.get(found[2].lower()) if found is not None else None
    return int(found[1]) * hours if found is not None and hours is not None else None
