"""What rules found: where, how severe it is, who is asked, and what clears it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ci_bot.bot.report.html import cells
from ci_bot.bot.report.html.cells import PageItem
from ci_bot.bot.report.model import policy_words
from ci_bot.bot.report.model.context import CommentLinks, CommentViewContext
from ci_bot.bot.report.model.risk_groups import group_risks, sort_findings_by_weight
from ci_bot.bot.report.model.sentences import SENTENCES
from ci_bot.protocol.base import Sha
from ci_bot.protocol.plan import SEVERITIES
from ci_bot.protocol.review_report import Report, Risk, find_owners
from ci_bot.protocol.rules import RULES, find_rule, read_rule_page


@dataclass(frozen=True)
class HtmlReportSources:
    """A report, and what only the bot knows about it."""

    report: Report
    context: CommentViewContext

    @cached_property
    def links(self) -> CommentLinks:
        return CommentLinks(self.context, self.report.head_sha)

    @cached_property
    def model_paths(self) -> dict[str, str]:
        """The file of each changed model that has one."""
        return {c.model: c.path for c in self.report.changes if c.path}

    def make_model_cell(self, model: str, note: str = "") -> list[str | None]:
        """Makes a cell with a model, linked to its file at the reviewed commit."""
        return cells.make_name_cell(model, self.links.file_url(self.model_paths.get(model)), note)

    def make_commit_url(self, sha: Sha | None) -> str | None:
        """Returns the URL of a commit on GitHub; None if it is not known."""
        return f"{self._project_root}/commit/{sha}" if self._project_root and sha else None

    def run_url(self, run: str | None) -> str | None:
        """Returns the URL of a workflow run, by its id with or without attempt; None if unknown."""
        number = (run or "").partition(".")[0]
        return (
            f"{self._project_root}/actions/runs/{number}"
            if self._project_root and number.isdigit()
            else None
        )

    @property
    def _project_root(self) -> str | None:
        context = self.context
        repository = context.repository
        return f"{context.server_url.rstrip('/')}/{repository}" if repository else None

    @cached_property
    def project_owners(self) -> dict[str, str]:
        """The `owner` of each changed model."""
        return {c.model: c.owner for c in self.report.changes if c.owner}

    def name_owners(self, risk: Risk) -> str:
        """Names who is asked about a finding: by policy or CODEOWNERS, else the model's `owner`."""
        item = find_owners(self.report.owners, risk)
        names = ", ".join(f"@{name}" for name in (*item.logins, *item.teams)) if item else ""
        return names or self.project_owners.get(risk.model or "", "")


def is_evidence_gap(risk: Risk) -> bool:
    """Whether it only says that something was not checked, with severity `info`."""
    is_evidence_rule = risk.rule in RULES and find_rule(risk.rule).scope == "evidence"
    return is_evidence_rule and risk.severity == "info"


def make_findings_section(sources: HtmlReportSources) -> list[PageItem]:
    """Makes the section of findings: those that count, those that do not, and the policy."""
    report = sources.report
    groups = group_risks(
        risk for risk in sort_findings_by_weight(report.risks) if not is_evidence_gap(risk)
    )
    aside = group_risks(sort_findings_by_weight(report.set_aside))
    policy = policy_words.describe_policy_used(report.policy)
    lighter = report.policy.not_loosened_because if report.policy else None
    parts = [
        *cells.make_table_part(
            [
                ("Severity", "chip"),
                ("Rule", "rule"),
                ("Where", "name"),
                ("What", "found"),
                ("Clears when", "text"),
                ("Owner", "text"),
            ],
            [
                [
                    *_make_row_of_finding_group(group, sources),
                    [
                        _describe_finding(group[0]),
                        _list_other_places_of_finding(group, sources),
                    ],
                    group[0].clears_when,
                    _list_owners(group, sources),
                ]
                for group in groups
            ],
            key="findings",
        ),
        *cells.make_table_part(
            [
                ("Severity", "chip"),
                ("Rule", "rule"),
                ("Where", "name"),
                ("What", "found"),
                ("Why it does not count", "text"),
            ],
            [
                [
                    *_make_row_of_finding_group(group, sources),
                    [group[0].evidence, _list_other_places_of_finding(group, sources)],
                    policy_words.describe_weight_of_finding(group[0]),
                ]
                for group in aside
            ],
            title=SENTENCES.aside_and_why,
            key="aside",
        ),
        *cells.make_prose_part(
            policy,
            f"{SENTENCES.nothing_lighter} {lighter}" if lighter else None,
        ),
    ]
    if not groups:
        parts = [*cells.make_prose_part(SENTENCES.no_problem), *parts]
    return cells.make_section_part("findings", "Findings", parts, len(groups))


def _make_row_of_finding_group(group: Sequence[Risk], sources: HtmlReportSources) -> list[object]:
    risk, more = group[0], len(group) - 1
    url = sources.links.file_url(risk.path, risk.line)
    severity = cells.make_chip_cell(risk.severity, risk.severity, SEVERITIES.index(risk.severity))
    note = (
        f"and {more:,} more"
        if more
        else _format_file_and_line_of_finding(risk)
        if risk.model
        else ""
    )
    return [
        severity,
        risk.rule,
        cells.make_name_cell(describe_location(risk), url, note),
    ]


def _list_other_places_of_finding(
    group: Sequence[Risk], sources: HtmlReportSources
) -> list[list[str | None]]:
    """Lists the other places, each with its address and what was found there."""
    return [
        [
            describe_location(risk),
            sources.links.file_url(risk.path, risk.line),
            risk.evidence,
        ]
        for risk in group[1:]
    ]


def describe_location(risk: Risk) -> str:
    """Returns the model, else the file and line, else "the plan"."""
    return risk.model or _format_file_and_line_of_finding(risk) or "the plan"


def _format_file_and_line_of_finding(risk: Risk) -> str:
    return f"{risk.path}:{risk.line}" if risk.path and risk.line else risk.path or ""


def _describe_finding(risk: Risk) -> str:
    weighed = policy_words.describe_weight_of_finding(risk)
    team_message = f"Your team says: {risk.message}" if risk.message else ""
    return " ".join(filter(None, (risk.evidence, weighed, team_message)))


def _list_owners(group: Sequence[Risk], sources: HtmlReportSources) -> str:
    found = (sources.name_owners(risk) for risk in group)
    return "; ".join(dict.fromkeys(owner for owner in found if owner))


def make_rules_section(names: Iterable[str], rules_url: str | None) -> list[PageItem]:
    """Makes the section of the found rules' pages, so that a reader needs no network."""
    known = sorted({name for name in names if name in RULES})
    pages = [
        [
            name,
            find_rule(name).title,
            read_rule_page(name),
            f"{rules_url}/{name}.md" if rules_url else None,
        ]
        for name in known
    ]
    parts = [{"type": "rules", "pages": pages}] if pages else []
    return cells.make_section_part("rules", "Rules", parts, len(pages))
