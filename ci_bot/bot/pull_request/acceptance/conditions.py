"""What stands against an acceptance, by the review that its own run has made. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from ci_bot.bot.policy.owning.accepting import fingerprints, may_be_accepted
from ci_bot.bot.policy.owning.owners import Ownership
from ci_bot.bot.policy.protected import UNWEIGHED
from ci_bot.bot.trigger.comment_command import AcceptCommand
from ci_bot.contracts.documents.report import Report, Risk
from ci_bot.errors import BadInput, Refused

_MOST_SHOWN = 5


def findings(own: Report, command: AcceptCommand) -> Sequence[Risk]:
    """The findings that are to be accepted, heaviest first.

    Raises:
        BadInput: there is none.
        Refused: an owner cannot accept them.
    """
    if own.failure is not None:
        raise Refused(
            f"The review that this run has made failed: {own.failure.message}",
            hint=own.failure.hint,
            reason_code="no_reviewed_plan",
        )
    if command.rule in UNWEIGHED:
        raise Refused(
            f"`{command.rule}` always counts, because {UNWEIGHED[command.rule]}.",
            hint="Nobody can accept it.",
            reason_code="not_acceptable",
        )
    found = [r for r in own.risks if (r.rule, r.model) == (command.rule, command.model)]
    if not found:
        raise _no_such_finding(own, command)
    if any(risk.severity == "blocker" for risk in found):
        raise Refused(
            f"`{command.rule}` on `{command.model}` blocks, and a blocker is not accepted.",
            hint="Clear it, or let a maintainer apply the plan with `--override`.",
            reason_code="not_acceptable",
        )
    return found


def ownership_of(own: Report, model: str) -> Ownership:
    """Whose a model is, as the review has found it."""
    for item in own.owners:
        if item.model == model:
            return Ownership(tuple(item.logins), tuple(item.teams), item.place)
    return Ownership()


def fingerprint_of(own: Report, model: str) -> str:
    """What the acceptance is bound to.

    Raises:
        Refused: nothing of the model changes.
    """
    found = fingerprints(own.changes).get(model)
    if found is None:
        raise Refused(
            f"Nothing of `{model}` changes in this pull request, so there is nothing that an "
            "acceptance could be bound to.",
            hint="Ignore the finding in the policy, or mend what it is about.",
            reason_code="not_acceptable",
        )
    return found


def not_the_owner(by: str, model: str, ownership: Ownership) -> Refused:
    """Who may, and by which line."""
    names = [f"`@{name}`" for name in (*ownership.logins, *ownership.teams)]
    if not names:
        return Refused(
            f"Nobody owns `{model}`: neither policy nor CODEOWNERS of the base branch says who.",
            hint="Name its owners there; it counts from the merge on.",
            reason_code="not_the_owner",
        )
    hint = f"{' or '.join(names)} may accept it, by {ownership.place}."
    if ownership.teams:
        # GitHub answers the same where a person is not in a team and where a token may not see it.
        hint += " Who is in a team, only a token with `members: read` of the organization sees."
    return Refused(f"`@{by}` does not own `{model}`.", hint=hint, reason_code="not_the_owner")


def _no_such_finding(own: Report, command: AcceptCommand) -> BadInput:
    done = [r for r in own.set_aside if (r.rule, r.model) == (command.rule, command.model)]
    if done:
        return BadInput(
            f"`{command.rule}` on `{command.model}` does not count already.",
            hint="The comment says why.",
            reason_code="no_such_finding",
        )
    every = sorted({f"{r.rule} {r.model}" for r in own.risks if may_be_accepted(r)})
    near = difflib.get_close_matches(f"{command.rule} {command.model}", every, n=_MOST_SHOWN)
    told = ", ".join(f"`{item}`" for item in near or every[:_MOST_SHOWN])
    return BadInput(
        f"The review has no finding `{command.rule}` on `{command.model}`.",
        hint=f"It has {told}." if told else "It has none that could be accepted.",
        reason_code="no_such_finding",
    )
