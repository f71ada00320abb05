"""How prod and its state differ from what the default branch and its pull requests say."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ci_bot.protocol.base import (
    SCHEMA_VERSION,
    Compared,
    Contract,
    Count,
    Failure,
    Line,
    Name,
    PlanId,
    Seconds,
    Sha,
    Timestamp,
)
from ci_bot.protocol.plan import ChangeType, ModelRange

# Of each kind; the counts beside them are of all.
MOST_LISTED = 200


class UnusedTables(Contract):
    """Versions of one model whose tables no environment reads, past the time that SQLMesh keeps."""

    model: Name
    versions: Count


class LastingEnvironment(Contract):
    """An environment of the state that is neither prod nor a pull request's, and does not end."""

    environment: Compared
    expires_at: Timestamp | None = Field(description="Null: it never expires.")


class MissedEstimate(Contract):
    """An apply that cost at least twice as much as expected, or half of it, in executor-hours."""

    environment: Name
    at: Timestamp
    expected_hours: Seconds
    used_hours: Seconds


class StateSurvey(Contract):
    """What a state says of prod and its other tables, read without loading a model's file."""

    behind: list[ModelRange] = Field(
        description="What prod lacks of each of its models, if it should have been built a day ago."
    )
    behind_models: Count
    lasting: list[LastingEnvironment]
    unused: list[UnusedTables]
    unused_versions: Count
    estimates: list[MissedEstimate]
    applies: Count = Field(description="Applies of the last 30 days that had an estimate.")


class DriftedModel(Contract):
    """A model in which the default branch and prod differ."""

    model: Name
    change: ChangeType


class UnownedEnvironment(Contract):
    """An environment that no open pull request owns, and why that is known."""

    environment: Compared
    pr_number: Count | None
    why: Line


class DriftReport(Contract):
    """What a drift run found. Nothing was changed for it, neither in state nor in warehouse."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["drift"] = "drift"
    commit: Sha | None = Field(description="Of the default branch, which prod is compared with.")
    planned_at: Timestamp
    plan_id: PlanId | None = Field(
        description="Of the plan that would make prod equal; null: nothing differs, or no plan."
    )
    models: list[DriftedModel]
    changed_models: Count
    other_changes: Count = Field(description="Statements around plans that differ.")
    prod_missing: Line | None = Field(description="Where prod was not found; null: it was.")
    failure: Failure | None = Field(description="Why the default branch has no plan.")
    environments: list[UnownedEnvironment]
    survey: StateSurvey

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing that a person should look at."""
        return not self.findings

    @property
    def findings(self) -> list[str]:
        """Which kinds of drift there are, by their names."""
        survey = self.survey
        kinds = {
            "no_plan": self.failure is not None or self.prod_missing is not None,
            "undeployed": bool(self.changed_models or self.other_changes or self.plan_id),
            "behind": bool(survey.behind_models),
            "environments": bool(self.environments or survey.lasting),
            "unused_tables": bool(survey.unused_versions),
            "estimates": bool(survey.estimates),
        }
        return [name for name, there in kinds.items() if there]
