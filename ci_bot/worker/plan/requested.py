"""What a request asks for: which options hold, and whether what it names exists and is its own."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sqlmesh.core import constants as c
from sqlmesh.core.dialect import normalize_model_name
from sqlmesh.core.plan import Plan
from sqlmesh.utils.errors import PlanError

from ci_bot.contracts.documents.plan_identity import PlanFlags
from ci_bot.contracts.messages import ApplyRequest, EstimateRequest, ReviewRequest
from ci_bot.errors import BadInput, BotError
from ci_bot.secrets.cutting import quoted_value
from ci_bot.worker import compat
from ci_bot.worker.plan.options import PlanOptions, resolve
from ci_bot.worker.project.plan_settings import PlanSettings
from ci_bot.worker.words.names import Names
from ci_bot.worker.words.problems import headline

# Signs of SQLMesh's selector language; what has none of them is the name of one model.
SELECTOR = frozenset("*?+^:@&|()!")
_SHOWN = 5
_SHOWN_STATEMENTS = 10
# A fully qualified name in a sentence of SQLMesh's; it quotes some of them once more.
_FQN = re.compile(r"""'?((?:"[^"'\n]+"\.)+"[^"'\n]+")'?""")


class PlanRefusedError(PlanError):
    """SQLMesh refuses to plan a project that loads.

    Args:
        models: those that the refusal is about, called as in reports; the first is its cause.
    """

    def __init__(self, message: str, models: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.models = tuple(models)


def options_of(
    context: Any, request: ReviewRequest | ApplyRequest | EstimateRequest, settings: PlanSettings
) -> PlanOptions:
    """The options that the request and the project say; `git:` in a selection is known from now on.

    Raises:
        BadInput: the project writes a value that cannot be meant.
    """
    if request.base_names:
        root, changed = Path(request.workplace.repository), request.changed_files
        files = None if changed is None else [root / path for path in changed]
        compat.select_by_changed_files(context, files, request.base_names)
    return resolve(
        request.flags,
        settings,
        start=request.start,
        end=request.end,
        pinned=request.pinned,
        head_branch=request.head_branch,
    )


def check_models(context: Any, flags: PlanFlags) -> None:
    """Every model that the flags name is in the project or in prod.

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
                _check_selection(context, name, item)
    prod = context.state_reader.get_environment(c.PROD)
    known = {*context.models, *(info.name for info in (prod.snapshots if prod else ()))}
    names = Names(context.default_catalog, context.default_dialect)
    for name, wanted in named.items():
        missing = [item for item in wanted if not _known(context, item, known)]
        if missing:
            every = sorted(names.of(fqn) for fqn in known)
            near = [match for item in missing for match in difflib.get_close_matches(item, every)]
            told = ", ".join(quoted_value(item) for item in missing[:_SHOWN])
            raise BadInput(
                f"`{name}` names what is no model of this project: {told}.",
                hint=f"Did you mean {' or '.join(near[:_SHOWN])}?"
                if near
                else f"The project has {len(context.models)} models, for example "
                f"{', '.join(every[:_SHOWN])}.",
                reason_code="unknown_model",
            )


def _check_selection(context: Any, name: str, text: str) -> None:
    """A selection that SQLMesh can read, and whose git branch (`git:main`) is there.

    Raises:
        BadInput: it cannot.
    """
    try:
        compat.expand_selection(context, text)
    except BotError:
        raise
    except Exception as error:  # its parser, its git and deep nesting each raise their own
        why = headline(error).partition(": ")[0]
        raise BadInput(
            f"`{name}` cannot be {quoted_value(text)}: {why}.",
            hint="A selection is a model (`shop.orders`), a pattern (`shop.*`) or a tag "
            "(`tag:daily`), with `+` before or behind it for what it reads and what reads it.",
            reason_code="bad_selection",
        ) from error


def refusal(
    error: PlanError, refused: Sequence[compat.RefusedChange], names: Names
) -> PlanRefusedError:
    """The same refusal, with the models and the statements that SQLMesh tells its console only."""
    named = [names.of(fqn) for fqn in _FQN.findall(str(error))]
    text = _FQN.sub(lambda found: f"`{names.of(found[1])}`", str(error))
    if not refused:
        return PlanRefusedError(text, named)
    models = [names.of(change.model) for change in refused]
    allow = " `allow-destructive` permits it." if "destructive" in text else ""
    statements = [statement for change in refused for statement in change.statements]
    lines = "".join(f"\n  {statement}" for statement in statements[:_SHOWN_STATEMENTS])
    return PlanRefusedError(f"{text.rstrip('.')}: {', '.join(models)}.{allow}{lines}", models)


def selects_nothing(error: PlanError, flags: PlanFlags) -> BadInput | None:
    """What to say where SQLMesh's refusal means that `select-model` matches no model."""
    if not flags.select_models or "Selector did not return any models" not in str(error):
        return None
    return BadInput(
        f"`select-model` matches no model: {', '.join(flags.select_models)}.",
        hint="`sqlmesh plan --select-model ... --explain` shows locally what a selection matches.",
        reason_code="unknown_model",
    )


def _known(context: Any, wanted: str, known: set[str]) -> bool:
    if SELECTOR & set(wanted):
        return True
    try:
        found = normalize_model_name(wanted, context.default_catalog, context.default_dialect)
    except Exception:
        return False
    return found in known


def check_nothing_of_others(context: Any, plan: Plan, keys: Iterable[str], names: Names) -> None:
    """The plan removes no model that belongs to another project on the same state.

    Raises:
        BadInput: it would, because this project has no `project:` key, or has changed it.
    """
    removed = list(plan.context_diff.removed_snapshots)
    if not removed:
        return
    own = {*keys, ""}
    others = sorted(
        (str(snapshot.node.project), names.of(snapshot.name))
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
