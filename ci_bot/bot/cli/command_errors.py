"""How a command is run: an activity's errors become a sentence, a fix, and an exit code."""

from __future__ import annotations

import ctypes
import os
import sys
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ci_bot.bot.cli.parameters import get_color, is_verbose
from ci_bot.errors import EXIT_FAILED, BotError, RunCancelled, make_unforeseen_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci_bot.host import Machine


def run_local_command(activity: Callable[..., int], options: dict[str, Any]) -> NoReturn:
    """Runs an activity that takes a command's options, each of the type that click gave it."""
    run_guarded(lambda machine: activity(machine, **options))


def run_guarded(activity: Callable[[Machine], int]) -> NoReturn:
    """Runs an activity; its errors become a sentence, a fix, and an exit code.

    Whatever we did not foresee is reported in the same way. Its traceback is for those who ask for
    it.
    """
    context = click.get_current_context(silent=True)
    verbose = is_verbose(context)
    try:
        from ci_bot.host import make_process_machine

        return_large_memory()
        code = activity(replace(make_process_machine(), verbose=verbose, color=get_color(context)))
    except (BotError, RunCancelled) as error:
        code = _print_failure(error)
    except BrokenPipeError:
        # Whoever read the output has gone; the interpreter must not complain about it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_FAILED
    except Exception as error:
        if verbose:
            print_crash(error)
        code = _print_failure(make_unforeseen_error(error))
    raise SystemExit(code)


def _print_failure(error: BotError | RunCancelled) -> int:
    """Says what is wrong, and how to fix it; returns the exit code."""
    from ci_bot.bot.report import describe_error

    click.echo(describe_error(error, os.environ), err=True)
    return error.exit_code


def print_usage_error(error: click.ClickException) -> None:
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


# malloc.h, and its own first value. A bound that somebody sets does not move any more.
_M_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024


def return_large_memory() -> bool:
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
