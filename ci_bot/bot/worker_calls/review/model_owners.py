"""Whose the models of a review are, and what their owners' acceptances are worth in it."""

from __future__ import annotations

from collections.abc import Sequence

from ci_bot.bot.cage.git.repository import Git
from ci_bot.bot.policy.owning.accepting import may_be_accepted
from ci_bot.bot.policy.owning.codeowners import MOST_BYTES as CODEOWNERS_BYTES
from ci_bot.bot.policy.owning.codeowners import PLACES
from ci_bot.bot.policy.owning.model_files import ModelFiles
from ci_bot.bot.policy.owning.owners import CodeOwnersFile, ownership
from ci_bot.bot.policy.weighing import Weighing
from ci_bot.bot.worker_calls.review.changed_files import Changes
from ci_bot.bot.worker_calls.review.policy_files import text_of
from ci_bot.contracts.documents.plan import Change
from ci_bot.contracts.documents.policy import ModelOwners
from ci_bot.contracts.documents.report import ReviewFacts, Risk

# Nobody reads more of them, and each is compared with every pattern.
MOST_MODELS_WITH_OWNERS = 500


def model_files(facts: ReviewFacts, git: Git, changed: Changes | None) -> ModelFiles:
    """Which of the changed files prove nothing about the models that they hold now."""
    if changed is None:
        return ModelFiles()
    added = {c.path for c in facts.changes if c.change == "added"}
    models = {c.model: c.path for c in facts.changes if c.path and c.change != "added"}
    held = set(models.values())
    sides = changed.contents(git, lambda file: file.path in held)
    before = {file.path: text_of(file.before) for file in sides}
    new = frozenset(f.path for f in changed.files if f.before is None and f.path not in added)
    return ModelFiles.of(models, before, new=new)


def fallen(weighing: Weighing, risks: Sequence[Risk]) -> list[str]:
    """Acceptances that were about a finding and are no longer, in sentences."""
    found = (weighing.acceptances.fallen(risk) for risk in risks)
    told = (
        f"What `@{item.by}` accepted on {item.at[:10]} no longer holds: `{item.rule}` on "
        f"`{item.model}`, which has changed since, weighs more, or is about something else."
        for item in found
        if item is not None
    )
    return list(dict.fromkeys(told))


def owners_of_models(
    weighing: Weighing,
    git: Git,
    commit: str,
    changes: Sequence[Change],
    risks: Sequence[Risk],
) -> list[ModelOwners]:
    """Who may accept which of these findings, by what the base commit says."""
    codeowners = _codeowners(git, commit)
    asked = {risk.model for risk in risks if may_be_accepted(risk)}
    found = []
    for change in [c for c in changes if c.model in asked][:MOST_MODELS_WITH_OWNERS]:
        model = change.model
        known = change.path if weighing.files.prove(model, change.path) else None
        owned = ownership(weighing.policy, weighing.matches, model, known, codeowners)
        if owned.place:
            found.append(
                ModelOwners(
                    model=model,
                    logins=list(owned.logins),
                    teams=list(owned.teams),
                    place=owned.place,
                )
            )
    return found


def _codeowners(git: Git, commit: str) -> CodeOwnersFile | None:
    with git.objects.files_of(commit, at_most=CODEOWNERS_BYTES) as read:
        for path in PLACES:
            content = read(path)
            if content is not None:
                # GitHub looks at no other place then, also where it does not load this one.
                fits = len(content) <= CODEOWNERS_BYTES
                return CodeOwnersFile(path, (text_of(content) or "") if fits else "")
    return None
