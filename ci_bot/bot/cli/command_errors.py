"""How a command is run: an activity's errors become a sentence, a fix, and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ci_bot.bot.cli.options import get_color, is_verbose
from ci_bot.errors import EXIT_FAILED, BotError, RunCancelled, unforeseen_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci_bot.host import Machine


def run_local_command(activity: Callable[..., int], options: dict[str, Any]) -> NoReturn:
    """`guarded`, for an activity that takes a command's options, each of the type that click gave
    it."""
    run_guarded(lambda machine: activity(machine, **options))


def run_guarded(activity: Callable[[Machine], int]) -> NoReturn:
    """Runs an activity; its errors become a sentence, a fix, and an exit code.

    Whatever we did not foresee is reported in the same way. Its traceback is for those who ask for
    it.
    """
    context = click.get_current_context(silent=True)
    verbose = is_verbose(context)
    try:
        from ci_bot.bot.cli.memory import keep_large_apart
        from ci_bot.host import of_this_process

        keep_large_apart()
        code = activity(replace(of_this_process(), verbose=verbose, color=get_color(context)))
    except (BotError, RunCancelled) as error:
        code = _print_failure(error)
    except BrokenPipeError:
        # Whoever read the output has gone; the interpreter must not complain about it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_FAILED
    except Exception as error:
        if verbose:
            print_crash(error)
        code = _print_failure(unforeseen_error(error))
    raise SystemExit(code)


def _print_failure(error: BotError | RunCancelled) -> int:
    """Says what is wrong, and how to fix it; returns the exit code."""
    from ci_bot.bot.report import describe_error

    click.echo(describe_error(error, os.environ), err=True)
    return error.exit_code


def tell_usage(error: click.ClickException) -> None:
    """Says which option is wrong, and where to look."""
    message = error.format_message()
    click.echo(_without_secrets(f"ci-bot: {message[:1].lower()}{message[1:]}"), err=True)
    path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "ci-bot"
    click.echo(f"        `{path} --help` shows what it takes. Nothing was touched.", err=True)


def _without_secrets(text: str) -> str:
    from ci_bot.bot.report import redact_text

    return redact_text(text, os.environ)


def print_crash(error: BaseException | None) -> None:
    """What nobody foresaw, in Python's own words: they repeat paths, settings and values."""
    lines = traceback.format_exception(error) if error is not None else []
    sys.stderr.write(_without_secrets("".join(lines)))
