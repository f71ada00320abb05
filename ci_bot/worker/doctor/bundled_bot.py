"""The effect here of each key under `cicd_bot:`, which SQLMesh's own CI bot reads.

For a team that switches from that bot: which keys work, which have no meaning here, and the
replacements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ci_bot.protocol.environment import (
    DEFAULT_PREFIX,
    is_environment_prefix,
    normalize_environment_name,
)
from ci_bot.protocol.plan import CheckStatus, ProjectCheck
from ci_bot.protocol.reasons import OF_THE_WORKER
from ci_bot.redaction import quote_value
from ci_bot.static_config import FILES, read_written_keys, read_written_prefix
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.project import BOT, read_plan_settings_of_project

if TYPE_CHECKING:
    from sqlmesh.core.context import Context

KeyVerdict = tuple[CheckStatus, str, str | None]

_NO_DEPLOYMENT = f"has no meaning here: {OF_THE_WORKER['prod']}"
_DEPLOY = (
    "Deploy with `sqlmesh plan` in a workflow of your own that runs on the default branch; "
    "deploy.yml among the examples deploys the reviewed plan only."
)
_REMOVE = "Take it out once SQLMesh's bot is gone."


def check_keys_of_bundled_bot(context: Context, first: Path) -> Iterator[ProjectCheck]:
    """Checks each key that is written, then adds the other steps of the switch; yields nothing
    without keys.

    Args:
        first: the directory of the project whose settings apply.
    """
    bot = getattr(context.config, "cicd_bot", None)
    if bot is not None:
        text = _read_plain_config(first)
        settings = sqlmesh_compat.list_written_sqlmesh_bot_settings(context.config)
        for key in dict.fromkeys([*settings, *read_written_keys(text, BOT)]):
            if key == "pr_environment_name":
                yield _check_bundled_bot_key(
                    key, _check_bundled_bot_environment(text, settings.get(key))
                )
            else:
                yield _check_bundled_bot_key(key, _judge_bundled_bot_key(key, settings.get(key)))
        for key, what in _DEFAULTS.items():
            if key not in settings and key in sqlmesh_compat.list_known_sqlmesh_bot_settings(bot):
                detail = f"is not written, and {what}: here only what is written counts."
                yield _check_bundled_bot_key(key, ("ok", detail, None))
        yield _check_bundled_bot_key("checks", _CHECKS)
    for note in read_plan_settings_of_project(context.configs).notes:
        yield _check_bundled_bot_key("projects", ("warn", note, "Write it in the first project."))
    approvers = [user for user in context.users if user.is_required_approver]
    if approvers:
        names = ", ".join(sorted(str(user.github_username or user.username) for user in approvers))
        yield ProjectCheck(
            name="users",
            status="warn",
            message=f"`required_approver` has no meaning here: {names}",
            fix="Require their review on GitHub: CODEOWNERS with branch protection before a merge, "
            "required reviewers of the environment `sqlmesh-apply` before an apply.",
        )


def _check_bundled_bot_key(key: str, line: KeyVerdict) -> ProjectCheck:
    status, message, fix = line
    return ProjectCheck(name=f"{BOT}.{key}", status=status, message=message, fix=fix)


def _read_plain_config(directory: Path) -> str:
    for name in FILES:
        if (directory / name).is_file():
            return (directory / name).read_text(encoding="utf-8", errors="replace")
    return ""


def _judge_bundled_bot_key(key: str, value: Any) -> KeyVerdict:
    if key in _HONOURED:
        if value is None:
            return "ok", "says what holds anyway", None
        return (
            "ok",
            f"honoured: {_HONOURED[key].format(value=_show_bundled_bot_value(value))}",
            None,
        )
    judge = _OTHERS.get(key)
    if judge is None:
        return "warn", "is not known here, and does nothing", _REMOVE
    return judge(value)


def _show_bundled_bot_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "dict"):
        return ", ".join(
            f"{name} {getattr(item, 'value', item)}" for name, item in value.dict().items()
        )
    return quote_value(str(value))


def _check_bundled_bot_environment(text: str, value: Any) -> KeyVerdict:
    """Checks the environment name: only a value that can be read without running code counts."""
    plain = read_written_prefix(text)
    if plain.prefix is not None:
        return (
            "ok",
            f"honoured: environments are called `{plain.prefix}_<number>`, as the base branch says "
            "and not the pull request; the input `environment-prefix` wins. A sweep reports those "
            "that were made under another prefix.",
            None,
        )
    meant = normalize_environment_name(str(value)) if value is not None else ""
    why = plain.problem or "is in Python code, which is not run to find a name"
    return (
        "warn",
        f"{why}, so environments are called `{DEFAULT_PREFIX}_<number>`",
        f"Set the input "
        f"`environment-prefix`{f': {meant}' if is_environment_prefix(meant) else ''}, the same "
        "in every workflow.",
    )


_HONOURED = {
    "auto_categorize_changes": "changes are categorized so, {value}, and not as `plan:` says",
    "default_pr_start": "plans begin at {value}; the input `start` wins",
    "default_pr_preview_start": "previews of forward-only models begin at {value}; the input "
    "`preview-start` wins",
    "pr_min_intervals": "each changed model gets at least {value} intervals; the input "
    "`min-intervals` wins",
    "pr_preview_min_intervals": "a preview gets at least {value} intervals; the input "
    "`preview-min-intervals` wins",
    "skip_pr_backfill": "{value}; the input `skip-backfill` wins",
    "pr_include_unmodified": "{value}; the input `include-unmodified` wins",
    "forward_only_branch_suffix": "a branch whose name ends with {value} is planned forward-only; "
    "the input `forward-only` wins",
}
# Keys whose default makes that bot act although they are not written.
_DEFAULTS = {
    "skip_pr_backfill": "SQLMesh's bot builds no data then",
    "default_pr_preview_start": "SQLMesh's bot previews from `yesterday` then",
    "forward_only_branch_suffix": "SQLMesh's bot plans branches `*-forward-only` forward-only then",
    "pr_environment_name": "SQLMesh's bot takes the repository's name then",
}


def _check_bundled_bot_type(value: Any) -> KeyVerdict:
    if value in (None, "github"):
        return "ok", "this is GitHub", None
    return (
        "warn",
        f"{_show_bundled_bot_value(value)}, and this works on GitHub only",
        "Use that bot there.",
    )


def _make_check_of_bot_value(
    value_in_use: Any, message: str, fix: str
) -> Callable[[Any], KeyVerdict]:
    """Makes the check of a key that matters with one value only."""

    def judge_value(value: Any) -> KeyVerdict:
        if value == value_in_use:
            return "warn", message, fix
        return "ok", "nothing to do: it asks for nothing", None

    return judge_value


def _make_check_of_meaningless_key(message: str, fix: str) -> Callable[[Any], KeyVerdict]:
    return lambda _value: ("warn", message, fix)


_OTHERS: dict[str, Callable[[Any], KeyVerdict]] = {
    "type": _check_bundled_bot_type,
    "enable_deploy_command": _make_check_of_bot_value(
        True, f"{_NO_DEPLOYMENT}, so there is no `/deploy`", _DEPLOY
    ),
    "merge_method": _make_check_of_meaningless_key(
        "has no meaning here: nothing is merged from here", "Use GitHub's auto-merge."
    ),
    "command_namespace": _make_check_of_meaningless_key(
        "has no meaning here: commands begin with `/sqlmesh`",
        "Tell people; `/sqlmesh help` shows what there is.",
    ),
    "run_on_deploy_to_prod": _make_check_of_bot_value(True, _NO_DEPLOYMENT, _DEPLOY),
    "check_if_blocked_on_deploy_to_prod": _make_check_of_meaningless_key(_NO_DEPLOYMENT, _REMOVE),
    "prod_branch_name": _make_check_of_meaningless_key(
        "has no meaning here: prod is what the state holds, and every base branch is reviewed "
        "against it",
        "Limit the review's workflow: `on: pull_request: branches: [main]`.",
    ),
    "invalidate_environment_after_deploy": _make_check_of_bot_value(
        False,
        "has no meaning here: an environment is always removed when its pull request closes",
        "What is to stay is built with `sqlmesh plan` under a name of its own.",
    ),
}
_CHECKS: KeyVerdict = (
    "warn",
    "the checks that SQLMesh's bot makes (`SQLMesh - Linter`, `SQLMesh - Run Unit Tests`, `SQLMesh "
    "- Prod Plan Preview` and others) are not made here, so a branch that requires them by name "
    "can never be merged",
    "Require the review's job instead: its name in the workflow, `Review the plan` in the example.",
)
