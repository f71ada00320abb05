"""How commands are declared and run: parameters, and errors as sentence, fix and exit code.

click stops at the first wrong value, with five lines of usage. Here every parameter records what is
wrong with it, and the command is refused once, with one sentence for each problem.
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


# Returns the words to which a value may be completed, from the parameters given so far.
Complete = Callable[[Mapping[str, Any]], Iterable[str]]

if TYPE_CHECKING:
    _Type = click.ParamType[Any]
else:
    _Type = click.ParamType


class ParsedOptionValue(_Type):
    """The type of a value that one of the parsers of `inputs` reads.

    Args:
        name: The word in capitals in `--help`, if the option has no metavar.
        complete: Returns the words to which a shell may complete a value, from earlier parameters.
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
            return value  # a default value
        try:
            return self.parse(value)
        except ValueError as error:
            raise click.BadParameter(
                inputs.describe_wrong_input_value(_label_command_parameter(param), value, error)
            ) from None


class OptionWordChoice(ParsedOptionValue):
    """The type of a value that is one of several words."""

    def __init__(self, *words: str) -> None:
        super().__init__(
            inputs.make_word_input_parser(*words), "|".join(words), lambda _given: words
        )
        self.words = words

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{self.name}]"


class _ReportsOptionProblems(click.Parameter):
    """A parameter that records a wrong value, so that the other parameters are read, too."""

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
    """An option of ours, which records its problems."""


class CommandArgument(_ReportsOptionProblems, click.Argument):
    """An argument of ours, which records its problems."""


class _CommandRefusedOnce(click.Command):
    """The base of our commands: it is refused once, with all that is wrong with it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            rest = super().parse_args(ctx, args)
        except click.UsageError as error:
            # click's parser does not say which command the line was for.
            error.ctx = error.ctx or ctx
            raise
        problems = ctx.meta.get(_PROBLEMS)
        if problems and not ctx.resilient_parsing:
            raise click.UsageError("; ".join(problems) + ".", ctx)
        return rest


class TwoLineCommand(_CommandRefusedOnce):
    """A command that is refused once, with all that is wrong with it."""


class CommandGroup(_CommandRefusedOnce, click.Group):
    """A group that lists its commands in the order in which they were added and are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def _label_command_parameter(param: click.Parameter | None) -> str:
    if param is None:
        return "the value"
    if isinstance(param, click.Option):
        return f"option `{max(param.opts, key=len)}`"
    return f"argument `{param.name}`"


def declare_command_option(*names: str, **more: Any) -> Callable[[Function], Function]:
    """Declares an option of ours; returns the decorator."""
    return click.option(*names, cls=CommandOption, **more)


def declare_command_option_of_input(
    name: str, *, kind: str = "text", **more: Any
) -> Callable[[Function], Function]:
    """Declares an option that is read as the action's input of its name; returns the decorator.

    `more` is for click: for example `help`.
    """
    return declare_command_option(
        f"--{name}", type=ParsedOptionValue(ActionInputs.find_parser(name), kind), **more
    )


def add_example_to_command(command: click.Command, *lines: str) -> click.Command:
    """Returns the command, with a help that ends with these lines, to be typed as they are."""
    command.epilog = "\b\n" + "\n".join(["Example:", *(f"  {line}" for line in lines)])
    return command


def declare_command_with_common_options(
    *examples: str,
) -> Callable[[Callable[..., None]], click.Command]:
    """Declares a command with our common options and these examples; returns the decorator."""

    def make_command(function: Callable[..., None]) -> click.Command:
        made = click.command(cls=TwoLineCommand)(add_common_command_options(function))
        return add_example_to_command(made, *examples)

    return make_command


def add_common_command_options(command: Function) -> Function:
    """Adds `--verbose` and `--color`, for use before the command or among its options."""

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
    """Returns the value of `--color`; `auto` if it was not given."""
    found: Color = "auto" if ctx is None else ctx.meta.get(_COLOR, "auto")
    return found


def run_command_with_options(activity: Callable[..., int], options: dict[str, Any]) -> NoReturn:
    """Runs an activity with a command's options, each of the type that click gave it, and exits."""
    run_command_guarded(lambda machine: activity(machine, **options))


def run_command_guarded(activity: Callable[[Machine], int]) -> NoReturn:
    """Runs an activity and exits; an error becomes a sentence, a fix, and an exit code.

    An unforeseen error is reported in the same way; its traceback appears only with `--verbose`.
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
        # The reader of the output is gone; the interpreter must not complain about it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_FAILED
    except Exception as error:
        if verbose:
            print_crash(error)
        code = _print_command_failure(make_unforeseen_error(error))
    raise SystemExit(code)


def _print_command_failure(error: BotError | RunCancelled) -> int:
    """Prints what is wrong, and how to fix it; returns the exit code."""
    from ci_bot.bot.report import describe_error

    click.echo(describe_error(error, os.environ), err=True)
    return error.exit_code


def print_usage_error(error: click.ClickException) -> None:
    """Prints which option is wrong, and where to read more."""
    message = error.format_message()
    click.echo(_drop_secrets(f"ci-bot: {message[:1].lower()}{message[1:]}"), err=True)
    path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "ci-bot"
    click.echo(f"        `{path} --help` shows what it takes. Nothing was touched.", err=True)


def _drop_secrets(text: str) -> str:
    from ci_bot.bot.report import redact_text

    return redact_text(text, os.environ)


def print_crash(error: BaseException | None) -> None:
    """Prints an unforeseen error as Python does (with paths, settings, values), without secrets."""
    lines = traceback.format_exception(error) if error is not None else []
    sys.stderr.write(_drop_secrets("".join(lines)))


# From malloc.h, with its own first value. A threshold that a program sets does not change any more.
_M_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024


def return_large_memory_after_command() -> bool:
    """Makes the C library return the memory of large texts to the system once they are freed.

    A report of thousands of models is several large texts, one after the other. The GNU C library
    returns a large block at once if it counts as large. But the first freed block raises that
    threshold to its own size (`M_MMAP_THRESHOLD` in mallopt(3)). From then on the next ones are
    placed among data that stays, and cannot be returned. For 5,000 models that is 6 MB of 85.

    Returns:
        Whether the C library has this setting.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return bool(mallopt and mallopt(_M_MMAP_THRESHOLD, _LARGE))
