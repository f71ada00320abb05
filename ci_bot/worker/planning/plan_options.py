"""The options that a plan is made with, and the source of each. Pure.

The run's inputs come first. Then come the keys under `cicd_bot:`, which the project writes for
SQLMesh's own bot, so that a team can switch without a change; that bot's defaults do not apply
here. Then comes the project's `plan:`. A review and an apply both resolve their options here, once
each.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlmesh.core import constants as c
from sqlmesh.core.dialect import normalize_model_name
from sqlmesh.core.plan import Plan
from sqlmesh.utils.errors import PlanError

from ci_bot.errors import BadInput, BotError
from ci_bot.protocol.files import MOST_INTERVALS
from ci_bot.protocol.messages import ApplyRequest, EstimateRequest, ReviewRequest
from ci_bot.protocol.plan_identity import (
    SHOWN,
    GivenFlags,
    OptionName,
    PlanFlags,
    PlanOption,
    Source,
)
from ci_bot.redaction import quote_value, shorten_redacted
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import MessageNames, extract_headline_of_error
from ci_bot.worker.project import BOT, PlanSettings

if TYPE_CHECKING:
    from sqlmesh.core.config import CategorizerConfig
    from sqlmesh.core.context import Context

Value = TypeVar("Value")


@dataclass(frozen=True)
class PlanOptions:
    """The options of a plan.

    Attributes:
        start, end: as they were given; None if nobody gave them.
        categorizer: how SQLMesh categorizes changes automatically; None: as in `plan:`.
        said: every option that was given, with its source.
    """

    flags: PlanFlags
    start: str | None = None
    end: str | None = None
    categorizer: CategorizerConfig | None = None
    said: tuple[PlanOption, ...] = ()


def resolve_plan_options(
    given: GivenFlags,
    settings: PlanSettings,
    *,
    start: str | None = None,
    end: str | None = None,
    pinned: bool = False,
    head_branch: str | None = None,
) -> PlanOptions:
    """Resolves the options that apply.

    Args:
        given: the run's inputs.
        settings: the project's configuration.
        start, end: the run's dates.
        pinned: whether the dates are those of a review, to make the same plan again.
        head_branch: the pull request's branch, without `refs/heads/`; None: not known.

    Raises:
        BadInput: the project writes an impossible number.
    """
    options = _PlanOptionChooser(settings)
    dates = _PlanOptionChooser(settings, given="review") if pinned else options
    bot = settings.bot
    flags = PlanFlags(
        forward_only=options.choose_value(
            "forward-only",
            given.forward_only,
            (
                f"{BOT}.forward_only_branch_suffix",
                _decide_forward_only_by_branch(bot, head_branch),
            ),
            ("plan.forward_only", settings.forward_only or None),
        )
        or False,
        include_unmodified=options.choose_value(
            "include-unmodified",
            given.include_unmodified,
            options.read_written("pr_include_unmodified"),
            ("plan.include_unmodified", settings.include_unmodified or None),
        )
        or False,
        skip_backfill=options.choose_value(
            "skip-backfill", given.skip_backfill, options.read_written("skip_pr_backfill")
        )
        or False,
        min_intervals=options.choose_value(
            "min-intervals", given.min_intervals, options.read_count("pr_min_intervals")
        )
        or 0,
        preview_start=options.choose_value(
            "preview-start", given.preview_start, options.read_date("default_pr_preview_start")
        ),
        preview_min_intervals=options.choose_value(
            "preview-min-intervals",
            given.preview_min_intervals,
            options.read_count("pr_preview_min_intervals"),
        )
        or 0,
        select_models=options.choose_value("select-model", given.select_models or None) or [],
        restate_models=options.choose_value("restate-model", given.restate_models or None) or [],
        allow_destructive=options.choose_value("allow-destructive", given.allow_destructive or None)
        or [],
    )
    return PlanOptions(
        flags=flags,
        start=dates.choose_value("start", start, options.read_date("default_pr_start")),
        end=dates.choose_value("end", end),
        categorizer=options.choose_value(
            "auto-categorize-changes", None, options.read_written("auto_categorize_changes")
        ),
        said=tuple(options.said if dates is options else [*options.said, *dates.said]),
    )


class _PlanOptionChooser:
    """The choice of each option's source, which is noted in `said`."""

    def __init__(self, settings: PlanSettings, given: Source = "input") -> None:
        self._bot = settings.bot
        self._given = given
        self.said: list[PlanOption] = []

    def read_written(self, key: str) -> tuple[str, Any | None]:
        """Reads a key under `cicd_bot:`: its dotted name, and its value or None."""
        return f"{BOT}.{key}", self._bot.get(key)

    def read_date(self, key: str) -> tuple[str, str | None]:
        """Reads a key as text, because YAML turns text that looks like a date into one."""
        name, value = self.read_written(key)
        if isinstance(value, date | datetime):
            return name, value.isoformat()
        return name, None if value is None else str(value)

    def read_count(self, key: str) -> tuple[str, int | None]:
        """Reads a key as a number of intervals.

        Raises:
            BadInput: it is not a number from 0 to `MOST_INTERVALS`.
        """
        name, value = self.read_written(key)
        if value is not None and not 0 <= value <= MOST_INTERVALS:
            raise BadInput(
                f"The project's `{name}` is {value}, which is no number of intervals from 0 to "
                f"{MOST_INTERVALS:,}.",
                hint="Correct it in the configuration.",
                reason_code="bad_config",
            )
        return name, value

    def choose_value(
        self, name: OptionName, given: Value | None, *others: tuple[str, Value | None]
    ) -> Value | None:
        """Returns the first value that is given, and notes its source; None if there is none."""
        for key, value in ((None, given), *others):
            if value is not None:
                # Each named model is a separate option, as on a command line.
                for item in value if isinstance(value, list) else [value]:
                    self._note_choice(name, item, key)
                return value
        return None

    def _note_choice(self, name: OptionName, value: Any, key: str | None) -> None:
        source: Source = self._given if key is None else "project"
        self.said.append(
            PlanOption(name=name, value=_show_value_of_plan_option(value), source=source, key=key)
        )


def _decide_forward_only_by_branch(bot: Mapping[str, Any], head_branch: str | None) -> bool | None:
    """Whether the branch's name makes the plan forward-only; None if it decides nothing."""
    suffix = bot.get("forward_only_branch_suffix")
    # If the suffix is empty, SQLMesh's bot uses its default, because every name ends with "".
    return True if suffix and head_branch and head_branch.endswith(suffix) else None


def name_plan_option(name: OptionName, options: tuple[PlanOption, ...]) -> str:
    """Returns a message's name for an option: the project's key if that is its source."""
    key = next((option.key for option in options if option.name == name), None)
    return key or name


def _show_value_of_plan_option(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "dict"):  # a part of SQLMesh's configuration
        parts = {key: getattr(item, "value", item) for key, item in value.dict().items()}
        return shorten_redacted(", ".join(f"{key}: {item}" for key, item in parts.items()), SHOWN)
    return shorten_redacted(str(value), SHOWN)


# Checks of a request: its options, and that the models it names exist and belong to it.


# Signs of SQLMesh's selector language; a text without them is one model's name.
SELECTOR = frozenset("*?+^:@&|()!")

_SHOWN = 5

_SHOWN_STATEMENTS = 10
# A fully qualified name in a sentence of SQLMesh's; it quotes some of them once more.
_FQN = re.compile(r"""'?((?:"[^"'\n]+"\.)+"[^"'\n]+")'?""")


class PlanRefusedError(PlanError):
    """The error if SQLMesh refuses to plan a project that loads.

    Args:
        models: those that the refusal is about, by their names in reports; the first is the cause.
    """

    def __init__(self, message: str, models: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.models = tuple(models)


def read_plan_options_of_request(
    context: Context,
    request: ReviewRequest | ApplyRequest | EstimateRequest,
    settings: PlanSettings,
) -> PlanOptions:
    """Resolves the options of the request and the project, and makes the context understand `git:`
    selections.

    Raises:
        BadInput: the project writes an impossible value.
    """
    if request.base_names:
        root, changed = Path(request.workplace.repository), request.changed_files
        files = None if changed is None else [root / path for path in changed]
        sqlmesh_compat.let_sqlmesh_select_by_changed_files(context, files, request.base_names)
    return resolve_plan_options(
        request.flags,
        settings,
        start=request.start,
        end=request.end,
        pinned=request.pinned,
        head_branch=request.head_branch,
    )


def check_models_of_plan_options(context: Context, flags: PlanFlags) -> None:
    """Checks that every model that the flags name is in the project or in prod.

    SQLMesh ignores some names that it does not know and fails late on others.

    Raises:
        BadInput: one is not; the message has the nearest names.
    """
    named = {
        "select-model": flags.select_models,
        "restate-model": flags.restate_models,
        "allow-destructive": flags.allow_destructive,
    }
    if not any(named.values()):
        return
    for name, wanted in named.items():
        for item in wanted:
            if set(item) & SELECTOR:
                _check_selection_of_plan(context, name, item)
    prod = context.state_reader.get_environment(c.PROD)
    known = {*context.models, *(info.name for info in (prod.snapshots if prod else ()))}
    names = MessageNames(context.default_catalog, context.default_dialect)
    for name, wanted in named.items():
        missing = [item for item in wanted if not _is_model_known_to_plan(context, item, known)]
        if missing:
            every = sorted(names.short_name(fqn) for fqn in known)
            near = [match for item in missing for match in difflib.get_close_matches(item, every)]
            listed = ", ".join(quote_value(item) for item in missing[:_SHOWN])
            raise BadInput(
                f"`{name}` names what is no model of this project: {listed}.",
                hint=f"Did you mean {' or '.join(near[:_SHOWN])}?"
                if near
                else f"The project has {len(context.models)} models, for example "
                f"{', '.join(every[:_SHOWN])}.",
                reason_code="unknown_model",
            )


def _check_selection_of_plan(context: Context, name: str, text: str) -> None:
    """Checks that SQLMesh can read a selection, and that its git branch (`git:main`) exists.

    Raises:
        BadInput: SQLMesh cannot read it, or the branch is not known.
    """
    try:
        sqlmesh_compat.expand_sqlmesh_selection(context, text)
    except BotError:
        raise
    except Exception as error:  # its parser, its git and deep nesting raise their own errors
        why = extract_headline_of_error(error).partition(": ")[0]
        raise BadInput(
            f"`{name}` cannot be {quote_value(text)}: {why}.",
            hint="A selection is a model (`shop.orders`), a pattern (`shop.*`) or a tag "
            "(`tag:daily`), with `+` before or behind it for what it reads and what reads it.",
            reason_code="bad_selection",
        ) from error


def describe_refusal_of_plan(
    error: PlanError, refused: Sequence[sqlmesh_compat.RefusedSqlmeshChange], names: MessageNames
) -> PlanRefusedError:
    """Makes the same refusal, with the models and statements that SQLMesh only prints to its
    console.
    """
    named = [names.short_name(fqn) for fqn in _FQN.findall(str(error))]
    text = _FQN.sub(lambda found: f"`{names.short_name(found[1])}`", str(error))
    if not refused:
        return PlanRefusedError(text, named)
    models = [names.short_name(change.model) for change in refused]
    allow = " `allow-destructive` permits it." if "destructive" in text else ""
    statements = [statement for change in refused for statement in change.statements]
    lines = "".join(f"\n  {statement}" for statement in statements[:_SHOWN_STATEMENTS])
    return PlanRefusedError(f"{text.rstrip('.')}: {', '.join(models)}.{allow}{lines}", models)


def explain_empty_selection_of_plan(error: PlanError, flags: PlanFlags) -> BadInput | None:
    """Makes the failure if SQLMesh's refusal means that `select-model` matches no model; else
    None.
    """
    if not flags.select_models or "Selector did not return any models" not in str(error):
        return None
    return BadInput(
        f"`select-model` matches no model: {', '.join(flags.select_models)}.",
        hint="`sqlmesh plan --select-model ... --explain` shows locally what a selection matches.",
        reason_code="unknown_model",
    )


def _is_model_known_to_plan(context: Context, wanted: str, known: set[str]) -> bool:
    if SELECTOR & set(wanted):
        return True
    try:
        found = normalize_model_name(wanted, context.default_catalog, context.default_dialect)
    except Exception:
        return False
    return found in known


def check_plan_removes_no_foreign_model(
    context: Context, plan: Plan, keys: Iterable[str], names: MessageNames
) -> None:
    """Checks that the plan removes no model that belongs to another project on the same state.

    Raises:
        BadInput: it would, because this project has no `project:` key, or has changed it.
    """
    removed = list(plan.context_diff.removed_snapshots)
    if not removed:
        return
    own = {*keys, ""}
    others = sorted(
        (str(snapshot.node.project), names.short_name(snapshot.name))
        for snapshot in context.state_reader.get_snapshots(removed).values()
        if str(snapshot.node.project or "") not in own
    )
    if others:
        projects = " and ".join(sorted({project for project, _ in others}))
        models = ", ".join(model for _, model in others[:_SHOWN])
        raise BadInput(
            f"This plan would remove {len(others)} models of another project on the same state "
            f"database ({projects}): {models}.",
            hint="Give this project a `project:` key of its own in its configuration, or a state "
            "of its own. If its key was changed on purpose, change it back and plan prod first.",
            reason_code="other_project",
        )


# A restatement in a PR environment may only name versions that the pull request itself made.
#
# SQLMesh skips a model whose version prod uses, with a warning that nobody sees. It also limits the
# backfill to restated models, so the views of all other changed models would point at tables that
# nobody built.


def check_restated_models_of_plan(plan: Plan, wanted: Sequence[str], names: MessageNames) -> None:
    """Checks that every named model has its own version in this environment.

    A pattern may match models of prod as well, as long as it matches one of the environment's.

    Args:
        wanted: The values of `restate-model`; none: nothing is restated.

    Raises:
        BadInput: the environment has no version of its own of a model.
    """
    if not wanted:
        return
    diff: Any = plan.context_diff
    ours = {s_id.name for s_id in diff.added} | set(diff.modified_snapshots)
    selected = set(plan.selected_models_to_restate or ())
    prods = sorted(names.short_name(name) for name in selected - ours)
    by_name = not any(SELECTOR & set(item) for item in wanted)
    if selected and (not prods or (selected & ours and not by_name)):
        return
    shown = ", ".join(prods) or ", ".join(wanted)
    raise BadInput(
        f"`restate-model` names what this pull request does not change: {shown}. The environment "
        "has no version of its own to restate, and prod's is never written.",
        hint="An owner can let prod build it again after the merge: `/sqlmesh restate MODEL START "
        'END "reason"`. From a terminal it is `sqlmesh plan prod --restate-model ... --start ... '
        "--end ...`.",
        reason_code="restates_prod",
    )
