"""Options and arguments of the command line whose wrong values are told all at once.

click stops at the first one, in five lines of usage. Here every parameter notes what is wrong with
it, and the command is refused as a whole, with one sentence for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ci_bot.bot import values

Function = TypeVar("Function", bound=Callable[..., Any])

_PROBLEMS = "ci_bot.problems"
_VERBOSE = "ci_bot.verbose"


if TYPE_CHECKING:
    _Type = click.ParamType[Any]
else:
    _Type = click.ParamType


class Value(_Type):
    """What one of the parsers of `values` reads.

    Args:
        name: What `--help` shows in capitals where the option has no metavar.
    """

    def __init__(self, parse: values.Parse, name: str = "text") -> None:
        self.parse = parse
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value  # a default
        try:
            return self.parse(value)
        except ValueError as error:
            raise click.BadParameter(values.wrong(_label(param), value, error)) from None


class Word(Value):
    """One of some words."""

    def __init__(self, *words: str) -> None:
        super().__init__(values.one_of(*words), "|".join(words))
        self.words = words

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{self.name}]"


class _ReportsProblems(click.Parameter):
    """Notes a wrong value, and lets the other parameters be read, too."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        try:
            return super().handle_parse_result(ctx, opts, args)
        except click.MissingParameter:
            problem = f"{_label(self)} is missing"
        except click.BadParameter as error:
            problem = error.message
        ctx.meta.setdefault(_PROBLEMS, []).append(problem)
        return None, args


class Option(_ReportsProblems, click.Option):
    """An option of ours."""


class Argument(_ReportsProblems, click.Argument):
    """An argument of ours."""


class TwoLineCommand(click.Command):
    """A command that is refused with everything that is wrong with it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        problems = ctx.meta.get(_PROBLEMS)
        if problems and not ctx.resilient_parsing:
            raise click.UsageError("; ".join(problems) + ".", ctx)
        return rest


def _label(param: click.Parameter | None) -> str:
    if param is None:
        return "the value"
    if isinstance(param, click.Option):
        return f"option `{max(param.opts, key=len)}`"
    return f"argument `{param.name}`"


def plan_options(command: Function) -> Function:
    """The options of a plan, the same for every command that makes one; see `with_flags`."""
    for option in reversed(_PLAN):
        command = option(command)
    return command


def _option(*names: str, **more: Any) -> Callable[[Function], Function]:
    return click.option(*names, cls=Option, **more)


def _model(name: str, what: str) -> Callable[[Function], Function]:
    return _option(
        f"--{name}",
        f"{name.replace('-', '_')}s" if name.endswith("model") else name.replace("-", "_"),
        type=Value(values.text),
        multiple=True,
        metavar="S" if name.startswith("select") else "M",
        help=f"{what}; repeatable.",
    )


def _switch(name: str, what: str) -> Callable[[Function], Function]:
    """Neither of the two means that the project decides."""
    return _option(f"--{name}/--no-{name}", default=None, help=what)


_PLAN = (
    _model("select-model", "A selection of models to plan, in SQLMesh's syntax"),
    _model("restate-model", "A model to rebuild in the environment"),
    _option("--start", type=Value(values.text), metavar="D", help="First date to build."),
    _option(
        "--end",
        type=Value(values.text),
        metavar="D",
        help="Last date to build, at most as far as prod has got.",
    ),
    _option(
        "--min-intervals",
        type=Value(values.intervals, "integer"),
        help="Smallest number of intervals that each changed model gets.",
    ),
    _option(
        "--preview-start",
        type=Value(values.text),
        metavar="D",
        help="First date for previews of forward-only models.",
    ),
    _option(
        "--preview-min-intervals",
        type=Value(values.intervals, "integer"),
        help="Smallest number of intervals in a preview of a forward-only model.",
    ),
    _switch("skip-backfill", "Build no data: tables are made, and stay empty."),
    _switch("include-unmodified", "Views for unmodified models, too."),
    _switch("forward-only", "Plan all changes as forward-only."),
    _model("allow-destructive", "A model whose destructive schema change is allowed"),
)
_FLAGS = (
    "forward_only",
    "include_unmodified",
    "skip_backfill",
    "min_intervals",
    "preview_start",
    "preview_min_intervals",
)
_LISTS = ("select_models", "restate_models", "allow_destructive")


def with_flags(options: dict[str, Any]) -> dict[str, Any]:
    """A command's options with those of its plan as `flags`; `start` and `end` stay as they are."""
    from ci_bot.contracts.documents.plan_options import GivenFlags

    rest = {name: value for name, value in options.items() if name not in (*_FLAGS, *_LISTS)}
    asked = {name: options[name] for name in _FLAGS}
    asked |= {name: list(options[name]) for name in _LISTS}
    return {**rest, "flags": GivenFlags(**asked)}


def verbose_option(command: Function) -> Function:
    """`--verbose`, which may stand before the command or among its options."""

    def switch_on(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta[_VERBOSE] = True

    return click.option(
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=switch_on,
        help="Show the tracebacks of failures.",
    )(command)


def is_verbose(ctx: click.Context | None) -> bool:
    """Whether `--verbose` was given."""
    return bool(ctx is not None and ctx.meta.get(_VERBOSE))
