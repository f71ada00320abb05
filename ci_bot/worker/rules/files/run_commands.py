"""The commands of SQLMesh in a team's own workflows, make files, DAGs and scripts.

They build and change prod after the merge, and no plan shows their effects. The options are those
of `sqlmesh plan --help`, `sqlmesh run --help` and `sqlmesh janitor --help`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from ci_bot.protocol.files import is_file_read_by_a_rule
from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line
from ci_bot.worker.rules.registry import on_file

CHANGED = find_rule("run-command-changed")
_CLEARS = "the owner of the deployment confirms what prod does from now on"

# Documents, and the files that SQLMesh itself reads.
_OTHER_FILES = frozenset(
    {".md", ".rst", ".adoc", ".html", ".htm", ".svg", ".log", ".sql", ".csv", ".lock", ".ipynb"}
)
# The bot's own report in the checkout: it shows commands and runs none.
_OWN_REPORT = re.compile(r'\s*\{\s*"schema_version"\s*:\s*\d+\s*,\s*"activity"\s*:')
_COMMENT = re.compile(r"(?:^|(?<=\s))#(?!!).*$", re.MULTILINE)
_CONTINUED = re.compile(r"\\\n\s*")
# Blank lines are removed: otherwise a pattern below could begin at one line and search all others.
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
# A list over several lines, in Python, JSON and YAML, is one command.
_LISTED = re.compile(r"[\"'\[\](),]|\n\s*-\s+(?=[\"']?-)|(?<=[\"'],)\s*\n")
_SUBCOMMANDS = (
    "plan|run|test|lint|audit|janitor|invalidate|destroy|migrate|rollback|check_intervals"
    "|state|github|clean|create_external_models|table_import"
)
_COMMAND = re.compile(
    r"(?<![\w./@-])(?:sqlmesh|sqlmesh_cicd)(?:[ \t]+-[\w-]+(?:[= ][^\s-]\S*)?){0,20}"
    rf"[ \t]+(?P<name>{_SUBCOMMANDS})\b(?P<rest>[^\n;|&>]*)"
)
_TOOL = re.compile(r"(?<![\w./@-])sqlmesh(?![\w.=~<>\[-])")
_API = re.compile(
    r"\b(?:context|ctx|sqlmesh_context|mesh)\.(?P<name>plan|run|run_janitor|invalidate_environment"
    r"|test|lint_models|audit)\("
)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
_KEYWORD = re.compile(r"\b([a-z]+(?:_[a-z]+)+|restate_models|start|end)\s*=\s*(?!None\b|False\b)")
_ENVIRONMENT = re.compile(r"^\s+(?!-)(\$\{\{[^}]*\}\}|[\w$@{}().-]+)")
_SHORT = {"-r": "--restate-model", "-s": "--start", "-e": "--end"}
# Other names of the same option, on the command line and in the Python API.
_ALIASES = {
    "--dry-run": "--skip-backfill",
    "--restate-models": "--restate-model",
    "--allow-destructive-models": "--allow-destructive-model",
    "--allow-additive-models": "--allow-additive-model",
    "--select-models": "--select-model",
    "--backfill-models": "--backfill-model",
}

# The effect of an option. If an option protects prod, the protection goes with the option.
_HARM = {
    "--empty-backfill": "intervals count as filled and nothing computes them",
    "--skip-backfill": "nothing is computed, so readers find empty or old tables",
    "--skip-tests": "failing unit tests do not hold it back",
    "--skip-linter": "lint errors do not hold it back",
    "--forward-only": "changes reach the tables of prod in place, and past rows keep old values",
    "--effective-from": "changes count from another date on",
    "--restate-model": "each call computes the model and all that reads it again, from its sources",
    "--allow-destructive-model": "columns of prod's tables may be dropped",
    "--allow-additive-model": "columns of prod's tables may be added in place",
    "--no-auto-categorization": "changes wait for somebody who categorises them",
    "--ignore-cron": "models run before they are due, on data that may not be there",
    "--no-auto-upstream": "models run without those that they read",
    "--exit-on-env-update": "a run ends early where a plan changes the environment",
    "--ignore-ttl": "what has not expired is deleted, too",
    "--force-delete": "state is deleted whose tables are left behind",
    "--min-intervals": "another part of the history is computed",
    "--no-gaps": "which intervals a plan computes is decided otherwise",
    "--skip-janitor": "nothing is cleaned up after it",
}
# Options that limit a command to a part, or skip its questions. In a new file they are no finding.
_LIMITS = {
    "--select-model": "what it does not name is left out",
    "--backfill-model": "models that it does not name are not computed",
    "--start": "the history before is not computed",
    "--end": "nothing after it is computed",
    "--execution-time": "it runs as if it were another time",
    "--create-from": "the environment begins as a copy of another one",
    "--include-unmodified": "views of all models are made",
    "--auto-apply": "nobody confirms the plan",
    "--run": "it computes what is due, besides",
    "--test-changed-only": "tests of other models are not run",
}
_EFFECTS = _HARM | _LIMITS
# Commands that check a change before prod changes, or keep prod up to date.
_WANTED = frozenset({"test", "lint", "audit", "run", "plan", "lint_models", "check_intervals"})
_CHANGES_PROD = frozenset(
    {"plan", "run", "migrate", "rollback", "destroy", "janitor", "invalidate", "state", "github"}
)
# Ways to continue after a failure: shells, make, GitHub, GitLab, Azure, Airflow, Ansible.
_GOES_ON = re.compile(
    r"sqlmesh(?:(?!sqlmesh)[^\n;&|])*(?:\|\|\s*(?:true|:|exit\s+0|echo\b[^\n]*)|;\s*true\b)"
    r"|^\s*set\s+\+e\b|^[ \t]*@?-\s?sqlmesh"
    r"|\bcontinue-on-error\s*:\s*true|\ballow_failure\s*:\s*true|\bcontinueOnError\s*:\s*true"
    r"|\bignore_errors\s*[:=]\s*(?:true|yes)|\btrigger_rule\s*=\s*\S*all_done"
    r"|^\s*if\s*:\s*(?:\$\{\{\s*)?always\(\)|\bcheck\s*=\s*False\b"
    r"|^\.IGNORE\s*:|^MAKEFLAGS\s*[+:?]?=[^\n]*(?:-\w*[ik]|--ignore-errors|--keep-going)",
    re.IGNORECASE | re.MULTILINE,
)
_STOPS = re.compile(r"^\s*set\s+-\w*e\w*|\bcheck\s*=\s*True\b", re.MULTILINE)
_SCHEDULE = re.compile(
    r"^\s*(?:-\s*)?[\"']?(?:cron|schedule|schedule_interval|timetable|schedule_expression)[\"']?\s*"
    r"[:=]\s*(?P<when>[^\n#]+)$"
    r"|\bcron_schedule\s*=\s*[\"'](?P<dagster>[^\"'\n]+)"
    r"|^(?P<tab>(?:[\d*/,-]+\s+){5})(?=.*\bsqlmesh\b)",
    re.MULTILINE,
)
# Conditions for which a job on GitHub waits, and events for which it runs.
_HELD = re.compile(r"^\s*(?:-\s*)?(?:environment|needs|if|branches)\s*:\s*[^\n#]*", re.MULTILINE)
# Shell commands that delete files, and names of files that outlive a run: a state and a warehouse
# in files, as DuckDB, SQLite, Derby and Spark's own catalog keep them.
_DELETION = re.compile(r"(?<![\w./-])(?:rm|shred|truncate|unlink)[ \t]+(?P<what>[^\n;|&>]*)")
_LASTING = re.compile(
    r"(?:^|/)[\"']?(?:state|warehouse|spark-warehouse|metastore(?:_db)?|[\w.-]+\.(?:duckdb|db|sqlite))"
    r"/?\*?[\"']?$"
)


@dataclass(frozen=True)
class RunFile:
    """SQLMesh's commands in one version of a file.

    Attributes:
        commands: number of times that each (command, its environment) occurs.
        options: long options of all commands, and keywords of SQLMesh's Python API.
        going_on: the texts by which a file continues after a failure.
        stops: number of shells that end at the first failure.
        schedules: the schedules, as written.
        held: the conditions for which a job waits, as written.
        deletions: the shell commands that delete a state, a warehouse or a database file.
    """

    commands: Counter[tuple[str, str]]
    options: Counter[str]
    going_on: Counter[str]
    stops: int
    schedules: Counter[str]
    held: Counter[str]
    deletions: Counter[str]

    @property
    def changes_prod(self) -> bool:
        """Whether any command can change prod."""
        return any(name in _CHANGES_PROD for name, _ in self.commands)


_NOTHING = RunFile(Counter(), Counter(), Counter(), 0, Counter(), Counter(), Counter())


def read_run_file(text: str) -> RunFile | None:
    """Reads SQLMesh's commands in a file; None if there are none."""
    if "sqlmesh" not in text or _OWN_REPORT.match(text):
        return None
    bare = _BLANK_LINES.sub("\n", _CONTINUED.sub(" ", _COMMENT.sub("", text)))
    flat = _LISTED.sub(" ", bare)
    found = list(_COMMAND.finditer(flat))
    calls = list(_API.finditer(bare)) if "sqlmesh" in bare else []
    options = Counter(_ALIASES.get(one, one) for one in _OPTION.findall(flat))
    # Tool and command may be separate, as in a manifest with `command` and `args`.
    apart = _TOOL.search(flat) is not None and not _EFFECTS.keys().isdisjoint(options)
    if not found and not calls and not apart:
        return None
    options.update(_SHORT[word] for one in found for word in one["rest"].split() if word in _SHORT)
    if calls:
        keywords = (f"--{word.replace('_', '-')}" for word in _KEYWORD.findall(bare))
        options.update(_ALIASES.get(one, one) for one in keywords)
    return RunFile(
        Counter(
            [(one["name"], _read_environment(one["name"], one["rest"])) for one in found]
            + [(one["name"].removeprefix("run_"), "") for one in calls]
        ),
        options,
        Counter(" ".join(one[0].split()) for one in _GOES_ON.finditer(bare)),
        len(_STOPS.findall(bare)),
        Counter(_read_schedule(one) for one in _SCHEDULE.finditer(bare)),
        Counter(" ".join(one.split()) for one in _HELD.findall(bare)),
        Counter(
            " ".join(one[0].split())
            for one in _DELETION.finditer(bare)
            if any(_LASTING.search(word) for word in one["what"].split())
        ),
    )


def _read_environment(name: str, rest: str) -> str:
    match = _ENVIRONMENT.match(rest)
    if name not in ("plan", "run", "invalidate", "check_intervals") or match is None:
        return ""
    return match[1]


def _read_schedule(match: re.Match[str]) -> str:
    written = " ".join((match["when"] or match["dagster"] or match["tab"]).split())
    return written.removesuffix(",").strip("\"' ")


@on_file(CHANGED)
def find_run_commands_changed_in_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds files whose commands of SQLMesh change."""
    for path in inputs.changed_files or ():
        if not _may_file_run_commands(path):
            continue
        texts = inputs.read_text_before(path), inputs.read_text_after(path)
        old, new = (None if text is None else read_run_file(text) for text in texts)
        if old is None and new is None:
            continue
        # A command and its options are one finding if they are removed together.
        found = list(_compare_run_files(old or _NOTHING, new, is_new=old is None)) if new else []
        found += _list_lost_commands(old, inputs) if old is not None else []
        for subject, sentence, severity in found:
            yield RuleObservation(
                CHANGED,
                sentence,
                _CLEARS,
                severity=severity,
                path=path,
                line=find_anchor_line(texts[1] or "", (subject, "sqlmesh")),
                subject=(subject,),
            )


def _may_file_run_commands(path: str) -> bool:
    return is_file_read_by_a_rule(path) and PurePosixPath(path).suffix.lower() not in _OTHER_FILES


# The subject of a finding, its sentence, and its severity if it is not the rule's.
CommandDifference = tuple[str, str, Severity | None]


def _compare_run_files(old: RunFile, new: RunFile, *, is_new: bool) -> Iterator[CommandDifference]:
    gained, lost = new.options - old.options, old.options - new.options
    for option in sorted(gained.keys() | lost.keys()):
        effect = _EFFECTS.get(option)
        if effect is None or (is_new and option in _LIMITS):
            continue
        how = "is given" if option in gained else "is no longer given"
        with_it = effect if option in gained else f"with it, {effect}"
        yield option, f"`{option}` {how} to a command of SQLMesh: {with_it}.", None
    for place in sorted(new.going_on - old.going_on):
        yield (
            place.split("\n")[0],
            f"It goes on after a failure (`{place[:120]}`): what fails no longer stops it.",
            None,
        )
    for command in sorted(new.deletions - old.deletions) if new.changes_prod else ():
        yield (
            command,
            f"`{command}` deletes files beside the commands of SQLMesh: without its state SQLMesh "
            "knows no table and no interval, and builds everything again.",
            None,
        )
    if new.stops < old.stops and new.commands:
        yield "set -e", "It no longer ends at the first failure.", None
    if not is_new and new.changes_prod:
        if old.schedules != new.schedules:
            was, now = (_list_counted_commands(one.schedules) for one in (old, new))
            yield (
                "schedule",
                f"It runs by {quote_names(now) or 'no schedule'}, and ran by "
                f"{quote_names(was) or 'none'}: models run no more often than this, whatever "
                "their `cron` says.",
                None,
            )
        if held := sorted((old.held - new.held).keys()):
            yield (
                "held",
                f"{quote_names(held)} is no longer written there: what the deployment waits for, "
                "or where it runs, is another one.",
                None,
            )


def _list_counted_commands(counted: Counter[str]) -> list[str]:
    return sorted(counted.elements())


def _list_lost_commands(old: RunFile, inputs: RuleInputs) -> Iterator[CommandDifference]:
    """Lists the commands that all changed files together no longer run.

    A command may move from one file to another.
    """
    lost = inputs.compute_once(_count_lost_commands)
    for name, environment in sorted(lost.keys() & old.commands.keys()):
        if name not in _WANTED:
            continue
        shown = f"sqlmesh {name} {environment}".rstrip()
        yield (
            f"sqlmesh {name}",
            f"`{shown}` is no longer run: what it builds or checks is left to others.",
            None,
        )


def _count_lost_commands(inputs: RuleInputs) -> Counter[tuple[str, str]]:
    """Counts the commands that all changed files together run less often than before."""
    paths = [path for path in inputs.changed_files or () if _may_file_run_commands(path)]
    return _count_commands(map(inputs.read_text_before, paths)) - _count_commands(
        map(inputs.read_text_after, paths)
    )


def _count_commands(texts: Iterable[str | None]) -> Counter[tuple[str, str]]:
    counted: Counter[tuple[str, str]] = Counter()
    for text in texts:
        found = read_run_file(text) if text is not None else None
        if found is not None:
            counted += found.commands
    return counted
