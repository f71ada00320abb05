"""Plan identity: one id for what a PR environment will be, and one for what prod will be.

The first covers what the environment becomes and the permissions it becomes it with. What is still
to do is no part of it, so that a retry, a second click or a scheduled prod run keep the id.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import Field

from ci_bot.protocol.base import Contract, Count, Line, Name, PlanId, Timestamp
from ci_bot.protocol.plan import Category, Window

MIN_PREFIX = 8
_WHOLE = re.compile(r"[0-9a-f]{64}")
_PART = re.compile(r'"([^"]+)"')
# Catalog, schema and table.
_FULL = 3


class TargetSnapshot(Contract):
    """What one model will be in the environment."""

    model: Name
    fingerprint: Name
    category: Category | None
    preview: bool
    promoted: bool
    start: Timestamp | None = Field(description="The target window, inclusive.")
    end: Timestamp | None = Field(description="Exclusive.")


class StatementIdentity(Contract):
    """Environment statements with the hash of the Python code that they can call."""

    before_all: list[str]
    after_all: list[str]
    python_env_sha256: Name


class PlanFlags(Contract):
    """Every option that changes what a plan does."""

    forward_only: bool = False
    include_unmodified: bool = False
    skip_backfill: bool = False
    min_intervals: Count = 0
    preview_start: str | None = None
    preview_min_intervals: Count = 0
    select_models: list[str] = Field(default_factory=list)
    restate_models: list[str] = Field(default_factory=list)
    allow_destructive: list[str] = Field(default_factory=list)


class RestatedRange(Contract):
    model: Name
    start: Timestamp
    end: Timestamp


class PlanIdentity(Contract):
    """Everything that the plan id is computed over."""

    environment: Name
    gateway: Name
    suffix_target: Name
    catalog_mapping: dict[str, str] = Field(default_factory=dict)
    state_schema_version: int
    flags: PlanFlags
    window: Window
    snapshots: list[TargetSnapshot]
    removed: list[Name]
    restatements: list[RestatedRange]
    statements: list[StatementIdentity]

    def plan_id(self) -> str:
        """The SHA-256 of the canonical JSON: sorted keys, sorted sets, no spaces, UTF-8."""
        return hashlib.sha256(self.make_canonical_text().encode()).hexdigest()

    def make_canonical_text(self) -> str:
        """The same text for the same plan, whatever order its sets were found in.

        The order of environment statements is kept: they run in that order.
        """
        document = self.model_dump(mode="json")
        document["snapshots"].sort(key=lambda item: item["model"])
        document["removed"].sort()
        document["restatements"].sort(key=lambda item: item["model"])
        for flag in ("select_models", "restate_models", "allow_destructive"):
            document["flags"][flag].sort()
        return _render_canonical_json(document)


class ProdSnapshot(Contract):
    """What one model that changes will be in prod."""

    model: Name
    fingerprint: Name
    category: Category | None
    forward_only: bool = Field(description="Prod's table stays, and history keeps its values.")


class ProdIdentity(Contract):
    """What a merge makes of prod, whenever it is deployed, and from whichever gateway.

    No window and no interval is part of it: prod's own runs move them between a review and the
    deployment, and where the history of a model begins is part of its fingerprint.
    """

    snapshots: list[ProdSnapshot]
    removed: list[Name]
    statements: list[StatementIdentity]

    def plan_id(self) -> PlanId:
        """The SHA-256 of the canonical JSON, as of a PR environment's plan."""
        document = self.model_dump(mode="json")
        document["snapshots"].sort(key=lambda item: item["model"])
        document["removed"].sort()
        return hashlib.sha256(_render_canonical_json(document).encode()).hexdigest()


def _render_canonical_json(document: Mapping[str, object]) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class PlanDifference(Contract):
    """What differs between the plan that was reviewed and the plan of now."""

    snapshots_added: list[Name] = Field(default_factory=list)
    snapshots_gone: list[Name] = Field(default_factory=list)
    snapshots_changed: list[Name] = Field(default_factory=list)
    fields_changed: list[Name] = Field(default_factory=list)


def matches_plan_id(requested: str, plan_id: PlanId) -> bool:
    """Whether `requested`, a plan id or a prefix of at least eight digits, names `plan_id`."""
    return len(requested) >= MIN_PREFIX and plan_id.startswith(requested.lower())


def find_full_plan_id(requested: str | None, reviewed: PlanIdentity | None) -> PlanId | None:
    """The whole id of the plan that was asked for; None if nobody knows more than a prefix."""
    if reviewed is not None:
        return reviewed.plan_id()
    return requested.lower() if requested and _WHOLE.fullmatch(requested.lower()) else None


def compare_identities(reviewed: PlanIdentity, current: PlanIdentity) -> PlanDifference:
    """What a refusal shows: the sets and the fields in which two plans differ."""
    called = _name_models([item.model for item in (*reviewed.snapshots, *current.snapshots)])
    before = {called[item.model]: item for item in reviewed.snapshots}
    after = {called[item.model]: item for item in current.snapshots}
    fields = [
        name
        for name in PlanIdentity.model_fields
        if name != "snapshots" and getattr(reviewed, name) != getattr(current, name)
    ]
    return PlanDifference(
        snapshots_added=sorted(after.keys() - before.keys()),
        snapshots_gone=sorted(before.keys() - after.keys()),
        snapshots_changed=sorted(
            name for name in before.keys() & after.keys() if before[name] != after[name]
        ),
        fields_changed=fields,
    )


def _name_models(models: Iterable[str]) -> dict[str, str]:
    """Models by their full names, as people write them: without quotes, and without the catalog
    where all of them are of one.
    """
    parts = {model: _PART.findall(model) or [model] for model in models}
    catalogs = {names[0] for names in parts.values() if len(names) == _FULL}
    known = len(catalogs) == 1
    return {
        model: ".".join(names[1:] if known and len(names) == _FULL else names)
        for model, names in parts.items()
    }


# The options of a plan: as a run was given them, and those that hold, each with who said so.


# The longest that one may be where it is told.
SHOWN = 4_000

Switch = Literal["skip-backfill", "include-unmodified", "forward-only"]

OptionName = (
    Switch
    | Literal[
        "select-model",
        "restate-model",
        "start",
        "end",
        "min-intervals",
        "preview-start",
        "preview-min-intervals",
        "allow-destructive",
        "auto-categorize-changes",
    ]
)
# `review`: a date that an earlier review of the same plan has fixed.
Source = Literal["input", "project", "review"]

_GIT = re.compile(r"\bgit\s*:", re.IGNORECASE)


class GivenFlags(Contract):
    """A plan's options among the inputs. Null, or an empty list, is "not said": then the project's
    configuration says it, and where that does not either, the default holds.
    """

    forward_only: bool | None = None
    include_unmodified: bool | None = None
    skip_backfill: bool | None = None
    min_intervals: Count | None = None
    preview_start: str | None = None
    preview_min_intervals: Count | None = None
    select_models: list[str] = Field(default_factory=list)
    restate_models: list[str] = Field(default_factory=list)
    allow_destructive: list[str] = Field(default_factory=list)


class PlanOption(Contract):
    """An option that somebody has said, and its value as it was given."""

    name: OptionName = Field(description="As the input is called, if there is one.")
    value: Line
    source: Source
    key: Name | None = Field(
        default=None, description="Where in the project's configuration; null for all others."
    )


def selects_by_git(flags: GivenFlags) -> bool:
    """Whether a selection asks which files have changed (`git:main`)."""
    named = [*flags.select_models, *flags.restate_models, *flags.allow_destructive]
    return any(_GIT.search(text) for text in named)
