"""Options and arguments of the command line whose wrong values are reported all at once.

click stops at the first one, in five lines of usage. Here every parameter notes what is wrong with
it, and the command is refused as a whole, with one sentence for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from ci_bot.bot.actions import Color, Inputs, values

Function = TypeVar("Function", bound=Callable[..., Any])

COLORS: tuple[Color, ...] = ("auto", "always", "never")

_PROBLEMS = "ci_bot.problems"

_VERBOSE = "ci_bot.verbose"

_COLOR = "ci_bot.color"


# From the parameters that are given so far to the words that a value may be.
Complete = Callable[[Mapping[str, Any]], Iterable[str]]

if TYPE_CHECKING:
    _Type = click.ParamType[Any]
else:
    _Type = click.ParamType


class ParsedValue(_Type):
    """What one of the parsers of `values` reads.

    Args:
        name: What `--help` shows in capitals where the option has no metavar.
        complete: What a shell may complete a value to, from the parameters before it.
    """

    def __init__(
        self, parse: values.Parse, name: str = "text", complete: Complete | None = None
    ) -> None:
        self.parse = parse
        self.name = name
        self._complete = complete

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        found = self._complete(ctx.params) if self._complete is not None else ()
        return [CompletionItem(name) for name in found if name.startswith(incomplete)]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value  # a default
        try:
            return self.parse(value)
        except ValueError as error:
            raise click.BadParameter(
                values.describe_wrong_value(_label_parameter(param), value, error)
            ) from None


class WordChoice(ParsedValue):
    """One of some words."""

    def __init__(self, *words: str) -> None:
        super().__init__(values.make_word_parser(*words), "|".join(words), lambda _given: words)
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
            problem = f"{_label_parameter(self)} is missing"
        except click.BadParameter as error:
            problem = error.message
        ctx.meta.setdefault(_PROBLEMS, []).append(problem)
        return None, args


class CommandOption(_ReportsProblems, click.Option):
    """An option of ours."""


class CommandArgument(_ReportsProblems, click.Argument):
    """An argument of ours."""


class _TwoLines(click.Command):
    """Is refused with everything that is wrong with it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            rest = super().parse_args(ctx, args)
        except click.UsageError as error:
            # click's parser does not say of which command the line was.
            error.ctx = error.ctx or ctx
            raise
        problems = ctx.meta.get(_PROBLEMS)
        if problems and not ctx.resilient_parsing:
            raise click.UsageError("; ".join(problems) + ".", ctx)
        return rest


class TwoLineCommand(_TwoLines):
    """A command that is refused with everything that is wrong with it."""


class CommandGroup(_TwoLines, click.Group):
    """Lists its commands in the order in which they were made, which is that of their use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def _label_parameter(param: click.Parameter | None) -> str:
    if param is None:
        return "the value"
    if isinstance(param, click.Option):
        return f"option `{max(param.opts, key=len)}`"
    return f"argument `{param.name}`"


def declare_option(*names: str, **more: Any) -> Callable[[Function], Function]:
    """An option of ours, as a decorator."""
    return click.option(*names, cls=CommandOption, **more)


def declare_input_option(
    name: str, *, kind: str = "text", **more: Any
) -> Callable[[Function], Function]:
    """An option that is read as the action's input of its name. Args: what `--help` shows of it."""
    return declare_option(f"--{name}", type=ParsedValue(Inputs.find_parser(name), kind), **more)


def with_example(command: click.Command, *lines: str) -> click.Command:
    """The command; its help ends with these lines, to be typed as they stand."""
    command.epilog = "\b\n" + "\n".join(["Example:", *(f"  {line}" for line in lines)])
    return command


def declare_command(*examples: str) -> Callable[[Callable[..., None]], click.Command]:
    """A command with our common options, as a decorator; its help ends with these examples."""

    def make_command(function: Callable[..., None]) -> click.Command:
        made = click.command(cls=TwoLineCommand)(add_common_options(function))
        return with_example(made, *examples)

    return make_command


def add_common_options(command: Function) -> Function:
    """`--verbose` and `--color`, which may stand before the command or among its options."""

    def switch_on_verbose(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta[_VERBOSE] = True

    def choose_color(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
        if value is not None:
            ctx.meta[_COLOR] = value

    command = declare_option(
        "--color",
        type=WordChoice(*COLORS),
        expose_value=False,
        callback=choose_color,
        help="Whether to use colours. `auto` does on a terminal, unless NO_COLOR is set.",
    )(command)
    return click.option(
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=switch_on_verbose,
        help="Show the tracebacks of failures.",
    )(command)


def is_verbose(ctx: click.Context | None) -> bool:
    """Whether `--verbose` was given."""
    return bool(ctx is not None and ctx.meta.get(_VERBOSE))


def get_color(ctx: click.Context | None) -> Color:
    """What `--color` says, `auto` without it."""
    found: Color = "auto" if ctx is None else ctx.meta.get(_COLOR, "auto")
    return found
