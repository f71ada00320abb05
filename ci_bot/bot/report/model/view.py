"""A report in the forms that readers need: counts, and lists in order of weight. No prose here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from ci_bot.bot.report import words
from ci_bot.bot.report.markdown_text import SafeMarkdown
from ci_bot.bot.report.model import advice, execution_examples, policy_words
from ci_bot.bot.report.model.advice import list_recommendations
from ci_bot.bot.report.model.build_table import BuildRowView, PlannedWorkView, list_build_row_views
from ci_bot.bot.report.model.context import CommentLinks, CommentViewContext
from ci_bot.bot.report.model.finding_groups import FindingPointView, ReportFindingsView
from ci_bot.bot.report.model.headline import (
    BaselineNoticeView,
    HeadlineView,
    ask_owners_in_headline_view,
    describe_owners_in_headline_view,
    make_baseline_notice_view,
    make_headline_view,
)
from ci_bot.bot.report.model.lineage import (
    ImpactRowView,
    LineageView,
    draw_change_picture,
    list_impact_row_views,
    list_models_that_read_nothing,
)
from ci_bot.bot.report.model.risk_groups import group_risks
from ci_bot.bot.report.words import (
    describe_options,
    find_plan_option,
    short_window,
    unify_model_names_in_text,
)
from ci_bot.protocol.base import Failure, name_what_does_not_load
from ci_bot.protocol.plan import Change, ModelRange, Restatement, select_tables
from ci_bot.protocol.review_inputs import ModelExecution

FAILURE_LINES = 15

_CATEGORY_ORDER = {
    "uncategorized": 0,
    "breaking": 1,
    "forward_only": 2,
    "indirect_breaking": 3,
    "non_breaking": 4,
    "indirect_non_breaking": 5,
    "metadata": 6,
}


def take_first_lines_of_failure(failure: Failure | None) -> tuple[str, int]:
    """Returns the first lines of a failure's message, and the number of the other lines."""
    lines = failure.message.strip().splitlines() if failure else []
    return "\n".join(lines[:FAILURE_LINES]), max(len(lines) - FAILURE_LINES, 0)


# How many examples the first screen shows.
FIRST_EXAMPLES = 2


@dataclass(frozen=True)
class ReviewView(PlannedWorkView):
    """The view for the review's templates; `complete` is for files and terminals, without a limit.

    Without `pictured` nothing is drawn, because not every place that reads Markdown draws Mermaid.
    If `is_applied`, it offers nothing that this apply has built.
    """

    context: CommentViewContext
    complete: bool = False
    pictured: bool = True
    is_applied: bool = False

    @cached_property
    def links(self) -> CommentLinks:
        return CommentLinks(self.context, self.report.head_sha)

    @cached_property
    def baseline_notice(self) -> BaselineNoticeView | None:
        """What the first line has to say about what the plan was compared with."""
        return make_baseline_notice_view(self.report)

    @cached_property
    def own_changes(self) -> list[Change]:
        """The pull request's own changes, weightiest first."""
        return self._rank_changes(from_base=False)

    @cached_property
    def drift(self) -> list[Change]:
        """Changes that the base branch brings and prod does not have yet."""
        return self._rank_changes(from_base=True)

    def _rank_changes(self, *, from_base: bool) -> list[Change]:
        return sorted(
            (change for change in self.report.changes if change.from_base == from_base),
            key=lambda change: (
                words.CHANGE_ORDER.index(change.change),
                _CATEGORY_ORDER.get(change.category or "", len(_CATEGORY_ORDER)),
                change.model,
            ),
        )

    @cached_property
    def counts(self) -> Counter[str]:
        """The pull request's own changes, counted by type."""
        return Counter(change.change for change in self.own_changes)

    @property
    def change_counts(self) -> list[tuple[str, int]]:
        """Own changes by type, in the order in which people ask for them."""
        order = ("direct", "added", "removed", "indirect", "metadata")
        return [(name, self.counts[name]) for name in order if self.counts[name]]

    @cached_property
    def categories(self) -> list[tuple[SafeMarkdown, int]]:
        """How SQLMesh classified the pull request's direct changes, weightiest first."""
        found = Counter(
            change.category
            for change in self.own_changes
            if change.category and change.change in ("direct", "added", "removed")
        )
        return [
            (SafeMarkdown(words.CATEGORIES[name]), found[name])
            for name in sorted(found, key=lambda name: _CATEGORY_ORDER[name])
        ]

    @cached_property
    def edited_changes(self) -> list[Change]:
        """The models that the pull request changes itself, as rows of their table."""
        return [c for c in self.own_changes if c.change in ("removed", "direct", "added")]

    @cached_property
    def downstream(self) -> list[Change]:
        return [c for c in self.own_changes if c.change == "indirect"]

    @cached_property
    def impact(self) -> list[ImpactRowView]:
        """What the pull request's changed columns and rows reach."""
        return list_impact_row_views(self.report.impact, {change.model for change in self.drift})

    @cached_property
    def examples(self) -> list[ModelExecution]:
        """The changed models whose results differed on generated rows."""
        return execution_examples.list_example_views(self.report)

    @cached_property
    def short_examples(self) -> list[execution_examples.ShortExampleView]:
        """The examples that fit on one line, for the first screen."""
        return execution_examples.list_short_example_views(self.report)[:FIRST_EXAMPLES]

    generated_note = execution_examples.GENERATED

    @cached_property
    def unproved_notes(self) -> list[str]:
        """Returns sentences about the changed models that have neither an example nor a proof."""
        return execution_examples.list_unproved_models(self.report)

    @cached_property
    def reads_nothing(self) -> list[str]:
        """Models that are built again although they read nothing that changes."""
        return list_models_that_read_nothing(
            self.report.impact, (item.model for item in select_tables(self.backfill))
        )

    @cached_property
    def metadata(self) -> list[Change]:
        return [c for c in self.own_changes if c.change == "metadata"]

    @cached_property
    def losses(self) -> list[Change]:
        """Models that are removed, and models that drop or retype a column."""
        return [
            c
            for c in (*self.own_changes, *self.drift)
            if c.change == "removed" or any(col.before is not None for col in c.columns)
        ]

    @cached_property
    def diffs(self) -> list[Change]:
        return [change for change in (*self.own_changes, *self.drift) if change.diff]

    @cached_property
    def head(self) -> HeadlineView:
        """The sentence about this change."""
        return make_headline_view(self.report, base_name=self.context.base_name)

    @cached_property
    def findings(self) -> ReportFindingsView:
        """Where each finding is reported."""
        models = {change.model for change in self.report.changes}
        models |= {node.model for node in self.report.lineage.nodes}
        models |= {risk.model for risk in self.report.risks if risk.model}
        risks = [
            risk.model_copy(update={"evidence": unify_model_names_in_text(risk.evidence, models)})
            for risk in self.report.risks
        ]
        return ReportFindingsView(self.report.model_copy(update={"risks": risks}), self.head)

    @property
    def risks(self) -> list[FindingPointView]:
        """All findings about the change, one for each question, heaviest first."""
        return self.findings.all_points

    @cached_property
    def asked_people(self) -> str:
        """The question whether the change of the data is intended; "" if nobody is asked."""
        if not self.findings.headline_findings:
            return ""
        return ask_owners_in_headline_view(self._list_data_owners(), self.head.kind)

    @property
    def owners_of_data(self) -> str:
        """The owners of the headline's models, as the project names them; "" if it names none."""
        return describe_owners_in_headline_view(self._list_data_owners())

    def _list_data_owners(self) -> list[str]:
        models = set(self.head.models)
        found = [c.owner for c in self.own_changes if c.model in models and c.owner]
        return list(dict.fromkeys(found))

    @property
    def why_not(self) -> str:
        """Why it cannot be applied, with a small first letter, to follow a colon."""
        text = self.report.not_appliable_because or ""
        return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text

    @property
    def unexplained(self) -> str:
        """Why a person has to look, if neither the sentence nor a finding at the top says so.

        The bot itself may ask for a person, for example if a fork's own run made the report.

        The bot itself may ask for one, as it does for a report that a fork's own run has made.
        """
        found, report = self.findings, self.report
        if report.decision not in ("review", "no_go") or report.base_failures or not report.reasons:
            return ""
        return "" if found.fixes or found.headline_findings or found.points else report.reasons[0]

    @property
    def not_checked_else(self) -> list[str]:
        """What was not checked, except what the results of tests and linter already say."""
        return [name for name in self.findings.not_checked if name not in ("unit tests", "lint")]

    @property
    def below_noun(self) -> str:
        """The noun for the findings of the first fold."""
        if self.report.decision == "go":
            return "note"
        # A finding that the top names only by its first place is listed below with all its places.
        again = any(point.more_places for point in self.findings.points)
        return "finding" if again else "more finding"

    @property
    def prod_fails(self) -> bool:
        """Whether the plan for prod would fail, and no finding says so."""
        plan = self.report.prod_plan
        is_reported = any(risk.rule == "R01-prod-plan-fails" for risk in self.report.risks)
        return plan is not None and plan.would_fail and not is_reported

    @cached_property
    def build(self) -> list[BuildRowView]:
        """What is built here, next to what prod builds after the merge."""
        return [] if self.skips_backfill or self.is_applied else list_build_row_views(self.report)

    @cached_property
    def picture(self) -> LineageView | None:
        """The changed models and all that read them, if they are few."""
        return None if self.complete or not self.pictured else draw_change_picture(self.report)

    @cached_property
    def aside_points(self) -> list[FindingPointView]:
        """The findings that did not count for the decision, one entry for each question."""
        return [FindingPointView(group) for group in group_risks(self.report.set_aside)]

    @property
    def set_aside(self) -> str:
        """How many findings did not count for the decision; "" if all did."""
        return policy_words.count_findings_set_aside(self.report.set_aside)

    @property
    def may_accept(self) -> str:
        """Who may accept the first heavy finding; "" if nobody may."""
        heavy = [risk for risk in self.findings.listed_risks if risk.severity == "high"]
        return policy_words.describe_who_may_accept(heavy, self.report.owners, self.context.command)

    @property
    def policy(self) -> str:
        """Says which policy counted; "" if there is none."""
        return policy_words.describe_policy_used(self.report.policy)

    @property
    def short_window(self) -> str | None:
        """Why the environment gets less history than prod; None if it gets all."""
        window = self.report.short_window
        if window is None:
            return None
        return short_window(window, self.report.environment, self.report.options)

    @property
    def options(self) -> str | None:
        """The plan's options that somebody has set, and who set them."""
        return describe_options(self.report.options)

    @property
    def skips_backfill(self) -> bool:
        """Whether the plan builds no data on purpose."""
        option = find_plan_option(self.report.options, "skip-backfill")
        return option is not None and option.value == "true"

    @cached_property
    def recommendations(self) -> list[str]:
        """What to fix, the most pressing first."""
        return list_recommendations(self.report)

    @property
    def gaps(self) -> list[ModelRange]:
        return list(self.report.prod_plan.gaps) if self.report.prod_plan else []

    @property
    def restatements(self) -> list[Restatement]:
        return sorted(self.report.restatements, key=lambda r: (-len(r.environments), r.model))

    @property
    def seconds(self) -> float:
        return sum(self.report.timings.values())

    @property
    def reproduce(self) -> str:
        """Shell lines that make the same review on a laptop."""
        return advice.describe_reproduction(self.report, self.context)

    @property
    def restatement(self) -> str:
        """The command that rebuilds data that prod already has."""
        return advice.make_restatement_command(self.report)

    @cached_property
    def change_of(self) -> dict[str, Change]:
        return {change.model: change for change in self.report.changes}

    @property
    def is_unplanned(self) -> bool:
        """Whether there is no plan because the base branch does not load."""
        return bool(self.report.base_failures) and not self.report.project.models

    @property
    def what_does_not_load(self) -> SafeMarkdown:
        """What does not load here and prevents the plan, but is not the pull request's doing."""
        return SafeMarkdown(name_what_does_not_load(self.report.base_failures))

    @property
    def cut_off(self) -> bool:
        """Whether SQLMesh was stopped before its end; then nothing is known about the project."""
        failure = self.report.failure
        return failure is not None and failure.reason_code in words.CUT_OFF

    @property
    def base_head(self) -> str:
        """The first lines of the message that says why the base branch cannot be loaded."""
        text, _ = take_first_lines_of_failure(next(iter(self.report.base_failures), None))
        return text

    @property
    def failure_head(self) -> tuple[str, int]:
        """Returns the first lines of a failure's message, and the number of the other lines."""
        return take_first_lines_of_failure(self.report.failure)
