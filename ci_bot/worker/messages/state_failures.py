"""Why a state database cannot be used, with the hint that fits the cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from sqlmesh.core.config.common import ALL_CONFIG_FILENAMES

from ci_bot.errors import BadInput, BotError, RequestRefused
from ci_bot.protocol.supported_versions import SQLMESH_VERSIONS_TEXT, is_supported, parse_release

_LOCKED = re.compile(r"Could not set lock|Conflicting lock")

_OTHER_DUCKDB = re.compile(r"database file with version number \d+|storage version", re.IGNORECASE)

_NO_VALUE = re.compile(r"\bNone\b")

_TLS = (
    "Check the TLS settings in the gateway's `state_connection` (`sslmode` for PostgreSQL), and "
    "the file of the authority that the variable `PGSSLROOTCERT` names, which the input "
    "`worker-env` passes to the worker."
)
# The first match gives the hint. The texts are those of psycopg2, pymysql, pymssql and Python.
_CAUSES: tuple[tuple[re.Pattern[str], str], ...] = (
    # The account may be right: the server has no rule for it without TLS. "SSL off" before 14.
    (re.compile(r"no pg_hba\.conf entry .*(?:no encryption|SSL off)", re.IGNORECASE), _TLS),
    (
        re.compile(
            r"password authentication failed|no password supplied|Access denied for user|"
            r"Login failed|role \S+ does not exist|no pg_hba\.conf entry",
            re.IGNORECASE,
        ),
        "Check the user and the password in the gateway's `state_connection`, and that their "
        "variables are passed to the worker with the input `worker-env`.",
    ),
    (
        re.compile(r"database \S+ does not exist|Unknown database", re.IGNORECASE),
        "Check the `database` in the gateway's `state_connection`.",
    ),
    (
        re.compile(
            r"could not translate host name|name or service not known|nodename nor servname|"
            r"temporary failure in name resolution|getaddrinfo",
            re.IGNORECASE,
        ),
        "Check the `host` in the gateway's `state_connection`: its name is not known where this "
        "runs.",
    ),
    (
        re.compile(
            r"connection refused|timed? ?out|no route to host|network is unreachable|"
            r"can't connect to|could not connect to server|adaptive server",
            re.IGNORECASE,
        ),
        "Check `host` and `port` in the gateway's `state_connection`, and that this runner may "
        "reach them: network, firewall, VPN.",
    ),
    (
        re.compile(r"not a valid DuckDB database file", re.IGNORECASE),
        "Check the `database` in the gateway's `state_connection`: that file is no DuckDB "
        "database.",
    ),
    (
        re.compile(r"no module named|is not installed", re.IGNORECASE),
        "Add the driver of this database to the file that the input `requirements` names.",
    ),
    (re.compile(r"\bssl\b|certificate", re.IGNORECASE), _TLS),
)

_ELSE = (
    "Check the gateway's `state_connection` and that its variables are passed to the worker with "
    "the input `worker-env`."
)

_VARIABLES_SHOWN = 5
# A default as a second argument means that the variable may be absent.
_VARIABLE = re.compile(
    r"(?:env_var|getenv|environ\.get)\(\s*['\"](\w+)['\"]\s*\)|environ\[\s*['\"](\w+)['\"]\s*\]"
)

_STATE_BLOCK = re.compile(r"^(?P<indent>[ \t]*(?:- )?)state_connection\s*:", re.MULTILINE)


def make_state_error(
    error: Exception, engine: str, projects: Iterable[Path], environ: Mapping[str, str]
) -> BotError:
    """Makes the failure for `error`, which was raised by opening the state or reading its version.

    Args:
        engine: The kind of database.
        projects: The projects' directories, whose configuration names the variables.
        environ: The variables of this run.
    """
    text = str(error)
    if _LOCKED.search(text):
        holder = re.search(r"PID (\d+)", text)
        who = f" by process {holder.group(1)}" if holder else ""
        return RequestRefused(
            f"The DuckDB state file is locked{who}.",
            hint="Wait for the other run to end, then ask again. A state that several runs share "
            "belongs on a database server such as PostgreSQL.",
            reason_code="state_locked",
        )
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return BadInput(
        f"The state database ({engine}) cannot be read: {first.strip()}",
        hint=_choose_state_hint(text, list_unset_variables(projects, environ)),
        reason_code="state_unreachable",
    )


def _choose_state_hint(text: str, unset: list[str]) -> str:
    if _OTHER_DUCKDB.search(text):
        return (
            "The file was written by another version of DuckDB than that of this run "
            f"({metadata.version('duckdb')}). Pin prod's version, `duckdb==…`, in the file that "
            "the input `requirements` names."
        )
    if unset:
        return describe_missing_variables(unset)
    if _NO_VALUE.search(text):
        return (
            "`None` stands where a variable is not set: look for it in the gateway's "
            "`state_connection`, and pass it to the worker with the input `worker-env`."
        )
    return next((hint for cause, hint in _CAUSES if cause.search(text)), _ELSE)


def describe_missing_variables(names: list[str]) -> str:
    """Describes variables without a value as a hint."""
    one = len(names) == 1
    shown = " and ".join(f"`{name}`" for name in names[:_VARIABLES_SHOWN])
    return (
        f"{'The variable' if one else 'The variables'} {shown}, which the configuration reads, "
        f"{'is' if one else 'are'} empty or not set in this run: pass {'it' if one else 'them'} "
        "to the worker with the input `worker-env`."
    )


def list_unset_variables(projects: Iterable[Path], environ: Mapping[str, str]) -> list[str]:
    """Lists the variables of the state connection that have no value here."""
    named = {
        name
        for project in projects
        for file in ALL_CONFIG_FILENAMES
        for name in _list_named(_read_text(project / file))
    }
    return sorted(name for name in named if not environ.get(name))


def _list_named(text: str) -> Iterator[str]:
    for block in _list_state_blocks(text):
        for found in _VARIABLE.finditer(block):
            yield found.group(1) or found.group(2)


def _list_state_blocks(text: str) -> list[str]:
    """Lists the parts of a configuration that describe the state connection; all of it if they
    cannot be found.
    """
    blocks = []
    for found in _STATE_BLOCK.finditer(text):
        indent = len(found.group("indent"))
        lines = text[found.end() :].splitlines()
        inside = lines[:1]
        for line in lines[1:]:
            if line.strip() and len(line) - len(line.lstrip()) <= indent:
                break
            inside.append(line)
        blocks.append("\n".join(inside))
    return blocks or [text]


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


# The failure of a state that another version of SQLMesh wrote, with the fix.


_MIGRATE = "let whoever owns prod upgrade it, which ends with `sqlmesh migrate`"

_NEVER = "This action never migrates a state."


def make_other_version_error(written_by: str, schema: int, *, installed: str) -> BadInput:
    """Makes the refusal of a review, an apply or a cleanup (exit 2).

    Args:
        written_by: The version of SQLMesh that the state names.
        schema: The schema version of the state's tables.
        installed: The version that this run has.
    """
    older = parse_release(written_by) < parse_release(installed)
    if parse_release(written_by) == parse_release(installed):
        hint = f"Its tables are of another version, though: {_MIGRATE}."
    elif is_supported(written_by):
        hint = f"Pin `sqlmesh=={written_by}` in the input `requirements`"
        hint += f"; or {_MIGRATE}." if older else ", with which prod is built."
    elif older:
        hint = (
            "It is older than the versions that this release works with "
            f"({SQLMESH_VERSIONS_TEXT}): {_MIGRATE}."
        )
    else:
        hint = (
            "It is newer than the versions that this release works with "
            f"({SQLMESH_VERSIONS_TEXT}): take a newer release."
        )
    return BadInput(
        f"The state database was written by another version of SQLMesh: {written_by} "
        f"(schema {schema}), and this run has {installed}.",
        hint=f"{hint} {_NEVER}",
        reason_code="state_version",
    )
