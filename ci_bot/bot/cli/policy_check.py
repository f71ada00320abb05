"""`ci-bot policy` at a terminal: is the file right, and what does it say about one model?"""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

from ci_bot.bot.cli.session import make_owner_on_laptop, open_worker_client_on_laptop
from ci_bot.bot.policy import (
    FILE_NAME,
    CodeOwnersFile,
    IgnoreEntry,
    Policy,
    PolicyEntry,
    PolicyScopeMatches,
    ScopedEntry,
    find_ignore_comments_for_policy,
    find_ownership_by_policy,
    is_policy_entry_on_path,
    list_rules_that_policy_may_weigh,
    may_ignore_comment_count,
    read_policy,
    severity_overrides,
)
from ci_bot.bot.policy import MOST_CODEOWNERS_BYTES as CODEOWNERS_BYTES
from ci_bot.bot.report import TextPage, make_text_page
from ci_bot.bot.worker_client import (
    RequestedTeamPolicy,
    WorkerClient,
    check_selections_answered_by_worker,
    make_error_of_worker_failure,
    read_base_policy_for_request,
    read_file_content_for_request,
    read_working_tree_policy_for_request,
)
from ci_bot.errors import EXIT_DONE, BadInput
from ci_bot.file_patterns import CODEOWNERS_PLACES
from ci_bot.host import Machine
from ci_bot.protocol.base import Failure
from ci_bot.protocol.messages import ScopesRequest
from ci_bot.protocol.review_inputs import ScopesAnswer, SelectedModel
from ci_bot.redaction import quote_value

_MINUTES = 5


def check_policy_on_laptop(machine: Machine, *, path: str) -> int:
    """`ci-bot policy check`: reads the file, and lets SQLMesh read its selections.

    Args:
        path: The file, or its directory.

    Raises:
        BadInput: there is no file, or it cannot be used.
    """
    given = machine.directory / path
    file = given / FILE_NAME if given.is_dir() else given
    shown = os.path.normpath(os.path.relpath(file, machine.directory))
    content = read_file_content_for_request(file)
    if content is None:
        raise BadInput(
            f"There is no policy {quote_value(shown)}.",
            hint=f"It is the file `{FILE_NAME}` beside the project's configuration. Without one "
            "every finding has its rule's own weight.",
            reason_code="bad_policy",
        )
    found = read_policy(
        content, path=shown, rules=list_rules_that_policy_may_weigh(), today=machine.read_date()
    )
    policy = Policy((found,))
    if policy.list_scopes():
        project = os.path.relpath(file.parent, machine.directory)
        with open_worker_client_on_laptop(
            machine, (project,), None, "", (), timeout_minutes=_MINUTES
        ) as client:
            answer = _request_policy_scopes(client, policy, None)
            check_selections_answered_by_worker(policy, policy.list_scopes(), answer.scoped)
    print(
        _render_policy_entries(policy, shown, machine),
        file=machine.out,
        end="",
        flush=True,
    )
    return EXIT_DONE


def explain_policy_on_laptop(
    machine: Machine,
    *,
    model: str,
    projects: tuple[str, ...],
    gateway: str | None,
    base_ref: str | None,
    python_path: tuple[str, ...],
    worker_env: str,
    timeout_minutes: int,
) -> int:
    """`ci-bot policy explain`: shows which entries are about a model, and their lines.

    Raises:
        BadInput: the policy cannot be used, or the project has no such model.
    """
    with open_worker_client_on_laptop(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        today = machine.read_date()
        if base_ref is None:
            team = read_working_tree_policy_for_request(
                client.checkout, client.projects, today=today
            )
        else:
            base = client.git.resolve_revision(base_ref)
            team = read_base_policy_for_request(
                client.git, client.projects, base=base, new=None, today=today
            )
        answer = _request_policy_scopes(client, team.policy, model)
        check_selections_answered_by_worker(team.policy, team.policy.list_scopes(), answer.scoped)
        if answer.model is None:
            near = " or ".join(f"`{name}`" for name in answer.near)
            raise BadInput(
                f"The project has no model {quote_value(model)}.",
                hint=f"Did you mean {near}?" if near else "`sqlmesh dag` shows all models.",
                reason_code="unknown_model",
            )
        matches = PolicyScopeMatches.from_answers(team.policy.list_scopes(), answer.scoped)
        owners = _read_codeowners(client.checkout)
        text = _render_policy_of_model(
            team, matches, answer.model, client.checkout, owners, machine
        )
    print(text, file=machine.out, end="", flush=True)
    return EXIT_DONE


def _request_policy_scopes(client: WorkerClient, policy: Policy, model: str | None) -> ScopesAnswer:
    request = client.make_request(
        ScopesRequest,
        owner=make_owner_on_laptop(client),
        scopes=policy.list_scopes(),
        model=model,
    )
    answer = client.request_scopes(request)
    if isinstance(answer, Failure):
        raise make_error_of_worker_failure(answer)
    return answer


def _read_codeowners(checkout: Path) -> CodeOwnersFile | None:
    for place in CODEOWNERS_PLACES:
        content = read_file_content_for_request(checkout / place, CODEOWNERS_BYTES)
        if content is not None:
            return CodeOwnersFile(place, content.decode("utf-8", "replace"))
    return None


def _render_policy_entries(policy: Policy, path: str, machine: Machine) -> str:
    page = make_text_page(machine)
    entries = policy.entries
    count = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
    page.add_title(f"{path} · {count}, all of them can be used", "green")
    today = machine.read_date()
    for entry in sorted(entries, key=lambda item: item.line):
        _add_policy_entry(page, entry, today)
    for name, value in policy.limits:
        if value is not None:
            page.add_fact("Limit", f"{name.replace('_', '-')}: {value}")
    if policy.executor_hour_price is not None:
        page.add_fact("Comment", f"executor-hour-price: {policy.executor_hour_price}")
    for name, words in (("header", policy.header), ("footer", policy.footer)):
        if words is not None:
            page.add_fact("Comment", f"{name}: {words.splitlines()[0]}")
    if policy.personal_schemas is not None:
        page.add_fact(
            "Personal",
            f"may be held by "
            f"{severity_overrides.list_names_in_policy_entry(policy.personal_schemas)}",
        )
    return page.render_text()


def _add_policy_entry(page: TextPage, entry: PolicyEntry, today: date) -> None:
    over = isinstance(entry, IgnoreEntry) and entry.until < today
    reason = getattr(entry, "reason", "")
    page.add_item(
        severity_overrides.describe_policy_entry(entry)
        + (": it is over, and ignores nothing any more" if over else ""),
        mark=f"line {entry.line:<4}",
        color="yellow" if over else None,
    )
    if reason:
        page.add_note(reason, indent=12)


def _render_policy_of_model(
    team: RequestedTeamPolicy,
    matches: PolicyScopeMatches,
    model: SelectedModel,
    checkout: Path,
    codeowners: CodeOwnersFile | None,
    machine: Machine,
) -> str:
    page = make_text_page(machine)
    owner_and_tags = [f"owner {model.owner}"] if model.owner else []
    owner_and_tags += [f"tags {', '.join(model.tags)}"] if model.tags else []
    page.add_title(" · ".join([model.model, *owner_and_tags]), "green")
    page.add_fact("File", model.path)
    page.add_fact("Policy", _describe_policy_files(team))
    about = [
        entry
        for entry in team.policy.entries
        if _is_policy_entry_about_model(entry, matches, model)
    ]
    for title, group in (
        ("Weights; of several about one finding the last counts", team.policy.severity),
        ("Ignored", team.policy.ignore),
        ("Statements", team.policy.statements),
        ("Data diff; the last counts", team.policy.data_diff),
        ("Owners; the last counts", team.policy.owners),
        ("Trust", team.policy.trust),
        ("Messages; the last counts", team.policy.messages),
    ):
        found = [entry for entry in group if entry in about]
        if found:
            page.add_heading(title)
        for entry in found:
            _add_policy_entry(page, entry, team.today)
    if not about:
        page.add_fact(
            "", "No entry is about this model: its findings have their rules' own weights."
        )
    _add_ignore_comments(page, model, checkout)
    owned = find_ownership_by_policy(team.policy, matches, model.model, model.path, codeowners)
    page.add_heading("Who answers for it")
    accounts = [*(f"@{name}" for name in owned.logins), *(f"@{name}" for name in owned.teams)]
    if accounts:
        page.add_item(f"{' and '.join(accounts)}, by {owned.place}")
    else:
        page.add_item("nobody: neither the policy nor CODEOWNERS names an owner")
    return page.render_text()


def _describe_policy_files(team: RequestedTeamPolicy) -> str:
    if team.used is None:
        return "there is none"
    files = " and ".join(team.used.files)
    if team.commit is None:
        return f"{files} of this directory; a pull request is judged by the base branch's"
    return f"{files} of commit {team.commit[:7]}"


def _is_policy_entry_about_model(
    entry: PolicyEntry, matches: PolicyScopeMatches, model: SelectedModel
) -> bool:
    on_path = not isinstance(entry, ScopedEntry) or is_policy_entry_on_path(entry, model.path)
    return matches.matches_both_versions(entry, model.model) and on_path


def _add_ignore_comments(page: TextPage, model: SelectedModel, checkout: Path) -> None:
    if model.path is None:
        return
    content = read_file_content_for_request(checkout / model.path)
    text = (content or b"").decode("utf-8", "replace")
    rules = list_rules_that_policy_may_weigh()
    found = [
        item
        for item in find_ignore_comments_for_policy(text, model.path)
        if may_ignore_comment_count(item, rules)
    ]
    if found:
        page.add_heading("Ignored by comments in its file")
    for item in found:
        page.add_item(item.rule, mark=f"line {item.line:<4}")
        page.add_note(item.reason, indent=12)
