"""The team's policy for one review: its files, its changes by a pull request, and what it needs.

It is read from the base commit, as git holds it: a pull request's changes to it count from the
merge on. On a laptop without a base commit the policy is the file in the working tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from ci_bot.bot.decision import EXPOSURE_AFFECTED, OVER_BUDGET, TeamLimits, make_risk
from ci_bot.bot.policy import MOST_CODEOWNERS_BYTES as CODEOWNERS_BYTES
from ci_bot.bot.policy import (
    AcceptancesByOwners,
    CodeOwnersFile,
    FilesOfOwnedModels,
    ModelOwnershipByPolicy,
    Policy,
    PolicyChange,
    PolicyIgnoreComments,
    PolicyScopeMatches,
    PolicyWeighing,
    UnfitPolicy,
    compare_ignore_comments_for_policy,
    explain_why_ignore_comment_never_counts,
    find_ownership_by_policy,
    list_policy_changes,
    list_rules_that_policy_may_weigh,
    make_scope_key_of_policy_entry,
    make_unfit_policy,
    may_be_accepted_by_owner,
)
from ci_bot.bot.sandbox import GitRepository
from ci_bot.bot.worker_client.client import WorkerClient
from ci_bot.bot.worker_client.review_subject import (
    RequestedFileChanges,
    RequestedReviewCommits,
    decode_content_for_request,
    is_sql_file,
    list_policy_paths,
    parse_policies,
    read_both_sides_for_request,
    read_committed_exposures,
    read_contents_for_request,
    read_exposures_below,
    read_file_content_for_request,
    read_unchanged_texts,
)
from ci_bot.errors import TimedOut
from ci_bot.file_patterns import CODEOWNERS_PLACES
from ci_bot.protocol.base import Sha
from ci_bot.protocol.cost import Price
from ci_bot.protocol.review_inputs import ModelScope, ScopedModels
from ci_bot.protocol.review_report import ModelOwners, PolicyUsed, ReviewFacts, Risk

# Who owns the models of a review, and which acceptances of these owners count in it.


# Nobody reads more of them, and each one is compared with every pattern.
MOST_MODELS_WITH_OWNERS = 500


def find_model_files(
    facts: ReviewFacts, git: GitRepository, changed: RequestedFileChanges | None
) -> FilesOfOwnedModels:
    """Finds changed files that prove nothing about their models: new ones, or ones of others."""
    if changed is None:
        return FilesOfOwnedModels()
    added = {c.path for c in facts.changes if c.change == "added"}
    models = {c.model: c.path for c in facts.changes if c.path and c.change != "added"}
    # A file can be moved, or get another model's text, although the model does not change.
    restated = {i.recorded.model: i.path for i in facts.prod_restatements if i.path}
    models = restated | models
    held = set(models.values())
    sides = changed.read_contents(git, lambda file: file.path in held)
    before = {file.path: decode_content_for_request(file.before) for file in sides}
    new = frozenset(f.path for f in changed.files if f.before is None and f.path not in added)
    return FilesOfOwnedModels.from_models(models, before, new=new)


def describe_fallen_acceptances(weighing: PolicyWeighing, risks: Sequence[Risk]) -> list[str]:
    """Describes in sentences acceptances that were about a finding, but do not hold any more."""
    found = (weighing.acceptances.find_fallen_acceptance(risk) for risk in risks)
    sentences = (
        f"What `@{item.by}` accepted on {item.at[:10]} no longer holds: `{item.rule}` on "
        f"`{item.model}`, which has changed since, weighs more, or is about something else."
        for item in found
        if item is not None
    )
    return list(dict.fromkeys(sentences))


def find_owners_of_requested_models(
    weighing: PolicyWeighing,
    git: GitRepository,
    commit: Sha,
    facts: ReviewFacts,
    risks: Sequence[Risk],
) -> list[ModelOwners]:
    """Finds who may accept these findings, or let prod build a model again.

    The base commit decides.
    """
    codeowners = _read_codeowners(git, commit)
    acceptable = {risk.model for risk in risks if may_be_accepted_by_owner(risk)}
    paths = {change.model: change.path for change in facts.changes if change.model in acceptable}
    restated = {item.recorded.model: item.path for item in facts.prod_restatements}
    found = []
    for model, path in list((restated | paths).items())[:MOST_MODELS_WITH_OWNERS]:
        known = path if weighing.files.has_proof_for(model, path) else None
        owned = find_ownership_by_policy(
            weighing.policy, weighing.matches, model, known, codeowners
        )
        if owned.place:
            found.append(
                ModelOwners(
                    model=model,
                    logins=list(owned.logins),
                    teams=list(owned.teams),
                    place=owned.place,
                )
            )
    return [*found, *_list_reader_owners(weighing, risks)]


def _list_reader_owners(weighing: PolicyWeighing, risks: Sequence[Risk]) -> list[ModelOwners]:
    """Lists the GitHub accounts that findings about readers outside of the project ask."""
    found = []
    for risk in risks:
        if risk.rule != EXPOSURE_AFFECTED.id or not may_be_accepted_by_owner(risk):
            continue
        exposures = [item for item in weighing.policy.exposures if item.name == risk.subject]
        accounts = list(dict.fromkeys(name for item in exposures for name in item.accounts))
        if accounts:
            owned = ModelOwnershipByPolicy.from_accounts(
                tuple(accounts), exposures[0].source_position
            )
            found.append(
                ModelOwners(
                    model=risk.model or "",
                    rule=risk.rule,
                    subject=risk.subject,
                    logins=list(owned.logins),
                    teams=list(owned.teams),
                    place=owned.place,
                )
            )
    return found[:MOST_MODELS_WITH_OWNERS]


def _read_codeowners(git: GitRepository, commit: Sha) -> CodeOwnersFile | None:
    with git.objects.open_commit_files(commit, at_most=CODEOWNERS_BYTES) as read:
        for path in CODEOWNERS_PLACES:
            content = read(path)
            if content is not None:
                # Then GitHub checks no other place, even if it does not load this file.
                fits = len(content) <= CODEOWNERS_BYTES
                return CodeOwnersFile(
                    path, (decode_content_for_request(content) or "") if fits else ""
                )
    return None


@dataclass(frozen=True)
class RequestedTeamPolicy:
    """What is known about the policy before the worker is asked.

    Attributes:
        policy: what counts.
        proposed: what would count after the merge, if that differs.
        changes: the differences between both.
        used: the part for the report; None if there is no file.
        commit: where the policy is read from; None on a laptop without one.
        no_lighter: why nothing becomes lighter, as a sentence; None if it may.
    """

    policy: Policy = field(default_factory=Policy)
    proposed: Policy | None = None
    changes: tuple[PolicyChange, ...] = ()
    used: PolicyUsed | None = None
    commit: Sha | None = None
    no_lighter: str | None = None
    today: date = date.min

    @property
    def scopes(self) -> list[ModelScope]:
        """The scopes to ask SQLMesh about: those that count first."""
        proposed = self.proposed.list_scopes() if self.proposed else []
        own = self.policy.list_scopes()
        return [*own, *(scope for scope in proposed if scope not in own)]

    @property
    def personal_schemas(self) -> list[str] | None:
        return self.policy.personal_schemas if self.no_lighter is None else None

    def check_selections(self, facts: ReviewFacts) -> None:
        """Refuses a selection that SQLMesh cannot read.

        Raises:
            UnfitPolicy: with its line.
        """
        # The pull request can only fix what it proposes itself.
        check_selections_answered_by_worker(self.proposed or self.policy, self.scopes, facts.scoped)

    def make_weighing(
        self, facts: ReviewFacts, git: GitRepository, changed: RequestedFileChanges | None
    ) -> PolicyWeighing:
        """Makes the weighing for the findings of a review.

        If git has no time left to show who owns the files, nothing becomes lighter.
        """
        own = self.policy.list_scopes()
        answers = facts.scoped[: len(own)]
        weighing = PolicyWeighing(
            policy=self.policy,
            matches=PolicyScopeMatches.from_answers(own, answers),
            today=self.today,
            loosens=self.no_lighter is None,
            acceptances=AcceptancesByOwners.from_items(facts.acceptances, facts.changes),
        )
        try:
            return replace(
                weighing,
                files=find_model_files(facts, git, changed),
                comments=self._read_ignore_comments(facts, git, changed),
            )
        except TimedOut:
            return replace(weighing, loosens=False)

    def _read_ignore_comments(
        self, facts: ReviewFacts, git: GitRepository, changed: RequestedFileChanges | None
    ) -> PolicyIgnoreComments:
        commit = self.commit
        if changed is None or commit is None:
            return PolicyIgnoreComments()
        named = [*(c.path for c in facts.changes), *(f.path for f in facts.findings)]
        touched = {file.path for file in changed.files}
        same = sorted({path for path in named if path and is_sql_file(path)} - touched)
        return compare_ignore_comments_for_policy(
            [
                *read_both_sides_for_request(git, changed),
                *read_unchanged_texts(git, commit, same),
            ],
            list_rules_that_policy_may_weigh(),
        )


def check_selections_answered_by_worker(
    policy: Policy, scopes: Sequence[ModelScope], answers: Sequence[ScopedModels]
) -> None:
    """Refuses a policy with a selection that SQLMesh cannot read.

    Raises:
        UnfitPolicy: with its line.
    """
    problems = {
        (tuple(scope.models), tuple(scope.owners)): answer.problem
        for scope, answer in zip(scopes, answers, strict=False)
        if answer.problem is not None
    }
    for entry in policy.entries:
        problem = problems.get(make_scope_key_of_policy_entry(entry))
        if problem is not None:
            raise make_unfit_policy(entry.path, [(entry.line, problem)])


def resolve_limits(given: TeamLimits, policy: Policy) -> TeamLimits:
    """Resolves the limits: an input's counts before the policy's."""
    limits = policy.limits
    hours = given.max_executor_hours
    return replace(
        given,
        max_intervals=limits.max_intervals if given.max_intervals is None else given.max_intervals,
        max_executor_hours=limits.max_executor_hours if hours is None else hours,
    )


def make_used_policy(
    team: RequestedTeamPolicy, weighing: PolicyWeighing, facts: ReviewFacts
) -> PolicyUsed | None:
    """Returns the part of the policy that a report keeps for later steps; None without a file."""
    if team.used is None:
        return None
    limits = team.policy.limits
    lighter = team.no_lighter is None
    return team.used.model_copy(
        update={
            "fail_on": limits.fail_on if lighter or limits.fail_on == "high" else None,
            "diff_tolerance": limits.diff_tolerance if lighter else None,
            "max_executor_hours": limits.max_executor_hours,
            "budget_blocks": _is_budget_blocker(weighing),
            "executor_hour_price": team.policy.executor_hour_price,
            "header": team.policy.header if lighter else None,
            "footer": team.policy.footer if lighter else None,
            "tolerances": {
                change.model: tolerance
                for change in facts.changes
                if (tolerance := _find_tolerance(weighing, change.model)) is not None
            },
        }
    )


def _is_budget_blocker(weighing: PolicyWeighing) -> bool:
    """Whether a finding about an exceeded budget would be a blocker."""
    found = weighing.weigh_risks([make_risk(OVER_BUDGET, "It would be above.", "it is not")])
    return any(item.severity == "blocker" for item in found.counting)


def _find_tolerance(weighing: PolicyWeighing, model: str) -> float | None:
    for entry in reversed(weighing.policy.data_diff):
        if weighing.matches.matches_both_versions(entry, model) and (
            weighing.loosens or not entry.tolerance
        ):
            return entry.tolerance
    return None


def list_added_ignore_comments(comments: PolicyIgnoreComments) -> Iterator[PolicyChange]:
    """Lists what the pull request's own comments would do after the merge."""
    rules = list_rules_that_policy_may_weigh()
    for item in comments.added:
        why = explain_why_ignore_comment_never_counts(item, rules)
        sentence = f"a comment would take `{item.rule}` out of `{item.path}` ({item.reason})"
        if why is not None:
            sentence = f"a comment about `{item.rule}` in `{item.path}` will never count: {why}"
        yield PolicyChange(sentence, loosens=why is None, path=item.path, line=item.line)


def read_base_policy_for_request(
    git: GitRepository,
    projects: Sequence[str],
    *,
    base: str,
    new: str | None,
    today: date,
    no_lighter: str | None = None,
) -> RequestedTeamPolicy:
    """Reads the policy of the base commit, and its changes in the commit `new`.

    If the base branch's policy cannot be used, but the pull request fixes it, it counts for
    nothing.

    Raises:
        UnfitPolicy: the pull request's version cannot be used, or the base's cannot and stays.
    """
    paths = list_policy_paths(projects)
    before = read_contents_for_request(git, base, paths)
    after = before if new is None else read_contents_for_request(git, new, paths)

    def read_proposed() -> Policy | None:
        if new is None:
            return None
        return parse_policies(paths, after, today, read_committed_exposures(git, new))

    proposed = read_proposed() if after != before else None
    found: list[PolicyChange] = []
    try:
        policy = parse_policies(paths, before, today, read_committed_exposures(git, base))
    except UnfitPolicy as error:
        # If a file of exposures is wrong, the policy's own files can be the same on both sides.
        proposed = proposed or read_proposed()
        if proposed is None:
            raise
        policy = Policy()
        sentence = (
            f"the base branch's cannot be used, so nothing of it counts here: {error.message}"
        )
        found.append(PolicyChange(sentence.removesuffix("."), loosens=True, path=error.path))
    if proposed is None and policy.listed:
        proposed = read_proposed()
    if proposed is not None:
        found += list_policy_changes(
            policy, proposed, weights=list_rules_that_policy_may_weigh(), today=today
        )
    files = [path for path, content in zip(paths, before, strict=True) if content is not None]
    return RequestedTeamPolicy(
        policy=policy,
        proposed=proposed,
        changes=tuple(found),
        used=PolicyUsed(
            source="base",
            commit=base,
            files=files,
            entries=len(policy.entries),
            loosens=no_lighter is None,
            not_loosened_because=no_lighter,
        )
        if files
        else None,
        commit=base,
        no_lighter=no_lighter,
        today=today,
    )


def read_working_tree_policy_for_request(
    checkout: Path, projects: Sequence[str], *, today: date
) -> RequestedTeamPolicy:
    """Reads the policy beside the projects of a laptop.

    Raises:
        UnfitPolicy: it cannot be used.
    """
    paths = list_policy_paths(projects)
    contents = [read_file_content_for_request(checkout / path) for path in paths]
    policy = parse_policies(paths, contents, today, read_exposures_below(checkout))
    files = [path for path, content in zip(paths, contents, strict=True) if content is not None]
    return RequestedTeamPolicy(
        policy=policy,
        used=PolicyUsed(source="working_tree", files=files, entries=len(policy.entries))
        if files
        else None,
        today=today,
    )


# Which policy counts for a request, and what it says about costs.


def read_effective_policy(
    client: WorkerClient,
    commits: RequestedReviewCommits,
    *,
    new: str | None,
    no_lighter: str | None = None,
    today: date,
) -> RequestedTeamPolicy:
    """Reads the policy of the base commit; on a laptop without one, that of the working tree.

    Args:
        new: The commit with the pull request's version; None: nobody has checked its changes.
        no_lighter: See `RequestedTeamPolicy`.

    Raises:
        UnfitPolicy: it cannot be used.
    """
    if commits.base is not None and client.git.has_commit(commits.base):
        return read_base_policy_for_request(
            client.git,
            client.projects,
            base=commits.base,
            new=new,
            today=today,
            no_lighter=no_lighter,
        )
    if commits.base is None and client.own_machine:
        return read_working_tree_policy_for_request(client.checkout, client.projects, today=today)
    return RequestedTeamPolicy(today=today)


def read_agreed_cost_for_request(
    client: WorkerClient,
    commits: RequestedReviewCommits,
    *,
    hours: float | None,
    price: Price | None,
    today: date,
) -> tuple[float | None, Price | None]:
    """Returns the most executor-hours and the price of one: as given, else as in the policy.

    Raises:
        UnfitPolicy: the policy cannot be used.
    """
    if hours is not None and price is not None:
        return hours, price
    policy = read_effective_policy(client, commits, new=commits.reviewed_commit, today=today).policy
    return (
        policy.limits.max_executor_hours if hours is None else hours,
        policy.executor_hour_price if price is None else price,
    )
