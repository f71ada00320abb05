"""Options and arguments of the command line whose wrong values are reported all at once.

click stops at the first one, in five lines of usage. Here every parameter notes what is wrong with
it, and the command is refused as a whole, with one sentence for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click
from click.shell_completion import CompletionItem

from ci_bot.bot.actions import Color, Inputs, values

_FORMAT_HELP = "What to print on stdout."

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
        super().__init__(values.one_of(*words), "|".join(words), lambda _given: words)
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


def common_options(command: Function) -> Function:
    """`--verbose` and `--color`, which may stand before the command or among its options."""

    def switch_on(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta[_VERBOSE] = True

    def choose(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
        if value is not None:
            ctx.meta[_COLOR] = value

    command = declare_option(
        "--color",
        type=WordChoice(*COLORS),
        expose_value=False,
        callback=choose,
        help="Whether to use colours. `auto` does on a terminal, unless NO_COLOR is set.",
    )(command)
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


def get_color(ctx: click.Context | None) -> Color:
    """What `--color` says, `auto` without it."""
    found: Color = "auto" if ctx is None else ctx.meta.get(_COLOR, "auto")
    return found


def _complete_model(given: Mapping[str, Any]) -> list[str]:
    from ci_bot.bot.cli.completion import list_model_names

    return list_model_names([*(given.get("path") or ()), *(given.get("projects") or ())] or ["."])


def _complete_rule(_given: Mapping[str, Any]) -> list[str]:
    from ci_bot.bot.cli.completion import list_rule_names

    return list_rule_names()


RULE_NAME = ParsedValue(values.parse_text, complete=_complete_rule)
MODEL_NAME = ParsedValue(values.parse_text, complete=_complete_model)


# Where a command works and what it prints: options that are the same in each command.


PROJECT = declare_option(
    "--project",
    "projects",
    type=ParsedValue(values.parse_path),
    multiple=True,
    metavar="PATH",
    help="Directory of a SQLMesh project, `.` by default; repeat it for several projects on one "
    "state.",
)

GATEWAY = declare_input_option(
    "gateway",
    help="SQLMesh gateway; the project's default otherwise.",
)

PYTHON_PATH = declare_option(
    "--python-path",
    type=ParsedValue(values.parse_path),
    multiple=True,
    metavar="DIR",
    help="Directory with Python modules of the project, as in PYTHONPATH. Repeatable.",
)

OUTPUT = declare_option(
    "--output",
    type=ParsedValue(values.parse_path),
    metavar="DIR",
    help="Write the complete report into this directory, too.",
)
# Of commands whose answer is no report.
ANSWER_FORMAT = declare_option(
    "--format",
    "form",
    type=WordChoice("terminal", "json"),
    default="terminal",
    show_default=True,
    help=_FORMAT_HELP,
)

FORMAT = declare_option(
    "--format",
    "form",
    type=WordChoice("terminal", "markdown", "json"),
    default="terminal",
    show_default=True,
    help=_FORMAT_HELP,
)

WORKER_ENV = declare_input_option(
    "worker-env",
    default="",
    help="Names and PREFIX_* of variables, separated by spaces, as in the workflow. Here your "
    "project sees all of your variables; those that you name are hidden in every text.",
)

PREFIX = declare_input_option(
    "environment-prefix",
    help="PR environments are called PREFIX_<number of the PR>; the project's, or pr.",
)

TIMEOUT = declare_input_option(
    "timeout-minutes",
    kind="integer",
    default=Inputs.timeout_minutes,
    show_default=True,
    help="Time limit of the whole run.",
)

BASE_REF = declare_option(
    "--base-ref",
    type=ParsedValue(values.parse_text),
    help="The branch that this change is to be merged into; `origin/HEAD` knows it otherwise.",
)

CLAIM = declare_option(
    "--claim",
    is_flag=True,
    help="It is yours although no record of this action says so, or says that it is another "
    "repository's.",
)


def project_argument(command: Function) -> Function:
    """A project may stand without `--project`, too, as `ci-bot review .`; see `with_projects`."""
    return click.argument(
        "path",
        cls=CommandArgument,
        type=ParsedValue(values.parse_path),
        nargs=-1,
        metavar="[PROJECT]...",
    )(command)


# A command's options are what click parsed, each of the type that its declaration says.


def with_projects(options: dict[str, Any]) -> dict[str, Any]:
    """A command's options with its projects as `projects`, however they were named."""
    rest = dict(options)
    named: Sequence[str] = (*rest.pop("path", ()), *rest.pop("projects"))
    return {**rest, "projects": tuple(dict.fromkeys(named)) or (".",)}


def choose_projects(found: Sequence[str]) -> Sequence[str]:
    """Asks a person at the terminal which of several projects is meant."""
    for number, project in enumerate(found, start=1):
        click.echo(f"  {number}  {project}", err=True)
    asked = f"Which SQLMesh project, 1 to {len(found)}"
    number = click.prompt(asked, type=click.IntRange(1, len(found)), err=True)
    return (found[number - 1],)


def environment_option(what: str, default: str | None = None) -> Callable[[Function], Function]:
    """`--environment`, which a command needs unless it has a default."""
    more = {"required": True} if default is None else {"default": default, "show_default": True}
    return declare_option("--environment", type=ParsedValue(values.parse_text), help=what, **more)


# The options of a plan, and of the limits that it is held against.


def plan_options(command: Function) -> Function:
    """The options of a plan, the same for every command that makes one; see `with_flags`."""
    for one in reversed(_PLAN):
        command = one(command)
    return command


def limit_options(command: Function) -> Function:
    """What a team may set for its reviews; without an option its policy says it."""
    for one in reversed(_LIMITS):
        command = one(command)
    return command


def budget_options(command: Function) -> Function:
    """The limits that are about cost alone."""
    for one in reversed((_MAX_HOURS, _PRICE)):
        command = one(command)
    return command


def _models_option(
    name: str, field: str, metavar: str, what: str
) -> Callable[[Function], Function]:
    return declare_option(
        f"--{name}",
        field,
        type=MODEL_NAME,
        multiple=True,
        metavar=metavar,
        help=f"{what} Repeatable.",
    )


def _switch_option(name: str, what: str) -> Callable[[Function], Function]:
    """Neither of the two means that the project decides."""
    return declare_option(f"--{name}/--no-{name}", default=None, help=what)


FORWARD_ONLY = _switch_option(
    "forward-only", "Plan all changes as forward-only: history keeps its old values."
)

ALLOW_DESTRUCTIVE = _models_option(
    "allow-destructive",
    "allow_destructive",
    "MODEL",
    "Let this forward-only model drop or retype columns.",
)

_PLAN = (
    _models_option(
        "select-model",
        "select_models",
        "SELECTION",
        "Plan only these models, in SQLMesh's syntax for selections: `+shop.orders`, `tag:daily`.",
    ),
    _models_option(
        "restate-model", "restate_models", "MODEL", "Rebuild this model in the environment."
    ),
    declare_input_option(
        "start",
        metavar="DATE",
        help="First date to build; the project's otherwise.",
    ),
    declare_input_option(
        "end",
        metavar="DATE",
        help="Last date to build; at most, and otherwise, as far as prod is built.",
    ),
    declare_input_option(
        "min-intervals",
        kind="integer",
        help="Smallest number of intervals that each changed model gets.",
    ),
    declare_input_option(
        "preview-start",
        metavar="DATE",
        help="First date for previews of forward-only models.",
    ),
    declare_input_option(
        "preview-min-intervals",
        kind="integer",
        help="Smallest number of intervals in a preview of a forward-only model.",
    ),
    _switch_option("skip-backfill", "Build no data: tables are made, and stay empty."),
    _switch_option("include-unmodified", "Make views of unmodified models, too."),
    FORWARD_ONLY,
    ALLOW_DESTRUCTIVE,
)

_PRICE = declare_input_option(
    "executor-hour-price",
    metavar="PRICE",
    help="Price of one executor-hour with its currency, such as `0.42 EUR`, to show a cost.",
)

_MAX_HOURS = declare_input_option(
    "max-executor-hours",
    kind="number",
    help="A higher estimate than this ends it, before anything is built.",
)

_LIMITS = (
    declare_option(
        "--fail-on",
        type=WordChoice(*get_args(values.FailOn)),
        help="From which finding on to exit with 1: a blocker (No-Go), high (Review, too), or "
        "never; the policy's, else blocker.",
    ),
    declare_input_option(
        "max-intervals",
        kind="integer",
        help="More intervals than this, in the environment or in prod, make it at least Review.",
    ),
    declare_input_option(
        "max-executor-hours",
        kind="number",
        help="A higher estimate than this, for the environment or for prod, makes it No-Go.",
    ),
    _PRICE,
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
    from ci_bot.protocol.plan_identity import GivenFlags

    rest = {name: value for name, value in options.items() if name not in (*_FLAGS, *_LISTS)}
    asked = {name: options[name] for name in _FLAGS}
    asked |= {name: sorted(options[name]) for name in _LISTS}
    return {**rest, "flags": GivenFlags(**asked)}
