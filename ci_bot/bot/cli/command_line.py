"""How commands are declared and run: parameters, and errors as a sentence, a fix and an exit code.

click stops at the first wrong value, in five lines of usage. Here every parameter notes what is
wrong with it, and the command is refused as a whole, with one sentence for each.
"""

from __future__ import annotations

import ctypes
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from click.shell_completion import CompletionItem

from ci_bot.bot.actions import ActionInputs, Color, inputs
from ci_bot.errors import EXIT_FAILED, BotError, RunCancelled, make_unforeseen_error

if TYPE_CHECKING:
    from ci_bot.host import Machine


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


class ParsedOptionValue(_Type):
    """What one of the parsers of `inputs` reads.

    Args:
        name: What `--help` shows in capitals where the option has no metavar.
        complete: What a shell may complete a value to, from the parameters before it.
    """

    def __init__(
        self, parse: inputs.Parse, name: str = "text", complete: Complete | None = None
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
                inputs.describe_wrong_input_value(_label_command_parameter(param), value, error)
            ) from None


class OptionWordChoice(ParsedOptionValue):
    """One of some words."""

    def __init__(self, *words: str) -> None:
        super().__init__(
            inputs.make_word_input_parser(*words), "|".join(words), lambda _given: words
        )
        self.words = words

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{self.name}]"


class _ReportsOptionProblems(click.Parameter):
    """Notes a wrong value, and lets the other parameters be read, too."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        try:
            return super().handle_parse_result(ctx, opts, args)
        except click.MissingParameter:
            problem = f"{_label_command_parameter(self)} is missing"
        except click.BadParameter as error:
            problem = error.message
        ctx.meta.setdefault(_PROBLEMS, []).append(problem)
        return None, args


class CommandOption(_ReportsOptionProblems, click.Option):
    """An option of ours."""


class CommandArgument(_ReportsOptionProblems, click.Argument):
    """An argument of ours."""


class _TwoLineUsageError(click.Command):
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


class TwoLineCommand(_TwoLineUsageError):
    """A command that is refused with everything that is wrong with it."""


class CommandGroup(_TwoLineUsageError, click.Group):
    """Lists its commands in the order in which they were made, which is that of their use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def _label_command_parameter(param: click.Parameter | None) -> str:
    if param is None:
        return "the value"
    if isinstance(param, click.Option):
        return f"option `{max(param.opts, key=len)}`"
    return f"argument `{param.name}`"


def declare_command_option(*names: str, **more: Any) -> Callable[[Function], Function]:
    """An option of ours, as a decorator."""
    return click.option(*names, cls=CommandOption, **more)


def declare_command_option_of_input(
    name: str, *, kind: str = "text", **more: Any
) -> Callable[[Function], Function]:
    """An option that is read as the action's input of its name. Args: what `--help` shows of it."""
    return declare_command_option(
        f"--{name}", type=ParsedOptionValue(ActionInputs.find_parser(name), kind), **more
    )


def add_example_to_command(command: click.Command, *lines: str) -> click.Command:
    """The command; its help ends with these lines, to be typed as they stand."""
    command.epilog = "\b\n" + "\n".join(["Example:", *(f"  {line}" for line in lines)])
    return command


def declare_command_with_common_options(
    *examples: str,
) -> Callable[[Callable[..., None]], click.Command]:
    """A command with our common options, as a decorator; its help ends with these examples."""

    def make_command(function: Callable[..., None]) -> click.Command:
        made = click.command(cls=TwoLineCommand)(add_common_command_options(function))
        return add_example_to_command(made, *examples)

    return make_command


def add_common_command_options(command: Function) -> Function:
    """`--verbose` and `--color`, which may stand before the command or among its options."""

    def switch_on_verbose(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta[_VERBOSE] = True

    def choose_color(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
        if value is not None:
            ctx.meta[_COLOR] = value

    command = declare_command_option(
        "--color",
        type=OptionWordChoice(*COLORS),
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


def is_command_verbose(ctx: click.Context | None) -> bool:
    """Whether `--verbose` was given."""
    return bool(ctx is not None and ctx.meta.get(_VERBOSE))


def get_color_option(ctx: click.Context | None) -> Color:
    """What `--color` says, `auto` without it."""
    found: Color = "auto" if ctx is None else ctx.meta.get(_COLOR, "auto")
    return found


def run_command_with_options(activity: Callable[..., int], options: dict[str, Any]) -> NoReturn:
    """Runs an activity that takes a command's options, each of the type that click gave it."""
    run_command_guarded(lambda machine: activity(machine, **options))


def run_command_guarded(activity: Callable[[Machine], int]) -> NoReturn:
    """Runs an activity; its errors become a sentence, a fix, and an exit code.

    Whatever we did not foresee is reported in the same way. Its traceback is for those who ask for
    it.
    """
    context = click.get_current_context(silent=True)
    verbose = is_command_verbose(context)
    try:
        from ci_bot.host import make_process_machine

        return_large_memory_after_command()
        code = activity(
            replace(make_process_machine(), verbose=verbose, color=get_color_option(context))
        )
    except (BotError, RunCancelled) as error:
        code = _print_command_failure(error)
    except BrokenPipeError:
        # Whoever read the output has gone; the interpreter must not complain about it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_FAILED
    except Exception as error:
        if verbose:
            print_crash(error)
        code = _print_command_failure(make_unforeseen_error(error))
    raise SystemExit(code)


def _print_command_failure(error: BotError | RunCancelled) -> int:
    """Says what is wrong, and how to fix it; returns the exit code."""
    from ci_bot.bot.report import describe_error

    click.echo(describe_error(error, os.environ), err=True)
    return error.exit_code


def print_usage_error(error: click.ClickException) -> None:
    """Says which option is wrong, and where to look."""
    message = error.format_message()
    click.echo(_drop_secrets(f"ci-bot: {message[:1].lower()}{message[1:]}"), err=True)
    path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "ci-bot"
    click.echo(f"        `{path} --help` shows what it takes. Nothing was touched.", err=True)


def _drop_secrets(text: str) -> str:
    from ci_bot.bot.report import redact_text

    return redact_text(text, os.environ)


def print_crash(error: BaseException | None) -> None:
    """Prints an unforeseen error in Python's own words, which repeat paths, settings and values."""
    lines = traceback.format_exception(error) if error is not None else []
    sys.stderr.write(_drop_secrets("".join(lines)))


# malloc.h, and its own first value. A bound that somebody sets does not move any more.
_M_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024


def return_large_memory_after_command() -> bool:
    """Has the C library give memory of large texts back to the system once they are gone.

    A report of thousands of models is some large texts, one after the other. The GNU C library
    gives a large block back at once, as long as it counts as large; but the first one that is freed
    raises that bound to its own size (`M_MMAP_THRESHOLD` in mallopt(3)), and from then on the next
    ones lie among what stays, if nothing can be given back. For 5,000 models that is 6 MB of 85.

    Returns:
        Whether the C library has such a setting.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return bool(mallopt and mallopt(_M_MMAP_THRESHOLD, _LARGE))
