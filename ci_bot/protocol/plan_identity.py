"""Plan identity: one id for what a PR environment will be, and one for what prod will be.

The first covers what the environment becomes, and the permissions for it. What is still to do is
not part of it, so a retry, a second click or a scheduled run of prod keeps the id.
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
        """Returns the SHA-256 of the canonical JSON: sorted keys, sorted sets, no spaces, UTF-8."""
        return hashlib.sha256(self.make_canonical_text().encode()).hexdigest()

    def make_canonical_text(self) -> str:
        """Returns the same text for the same plan, in whatever order its sets were found.

        The order of environment statements is kept, because they run in that order.
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
    """What a merge makes of prod, whenever it is deployed, and from any gateway.

    It has no window and no interval: prod's own runs move them between a review and the deployment.
    The fingerprint of a model already says where its history begins.
    """

    snapshots: list[ProdSnapshot]
    removed: list[Name]
    statements: list[StatementIdentity]

    def plan_id(self) -> PlanId:
        """Returns the SHA-256 of the canonical JSON, as for the plan of a PR environment."""
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
    """Returns the whole id of the requested plan; None if only a prefix of it is known."""
    if reviewed is not None:
        return reviewed.plan_id()
    plan_id = (requested or "").lower()
    return plan_id if _WHOLE.fullmatch(plan_id) else None


def compare_identities(reviewed: PlanIdentity, current: PlanIdentity) -> PlanDifference:
    """Compares two plans for a refusal: the sets and the fields in which they differ."""
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
    """Names models as people write them, by full name: without quotes.

    The catalog is left out if all of them are in the same one.
    """
    parts = {model: _PART.findall(model) or [model] for model in models}
    catalogs = {names[0] for names in parts.values() if len(names) == _FULL}
    known = len(catalogs) == 1
    return {
        model: ".".join(names[1:] if known and len(names) == _FULL else names)
        for model, names in parts.items()
    }


# The options of a plan: those that a run was given, and those that apply, each with its source.


# The longest text of an option that is shown.
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
# `review`: a date that an earlier review of the same plan has set.
Source = Literal["input", "project", "review"]

_GIT = re.compile(r"\bgit\s*:", re.IGNORECASE)


class GivenFlags(Contract):
    """A plan's options among the inputs. Null, or an empty list, means "not given".

    Then the project's configuration decides, and the default if the configuration has nothing.
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
    """An option that somebody has set, and its value as it was given."""

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
