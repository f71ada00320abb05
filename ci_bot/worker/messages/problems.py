"""Turns exceptions of SQLMesh, Spark and a state database into one sentence, a place in the code,
and a next step that fits the cause.

Each worker imports it before it knows its request, so this module does not import SQLMesh.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from ci_bot.errors import (
    EXIT_BAD_INPUT,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    BadInput,
    BotError,
    RequestRefused,
)
from ci_bot.protocol.base import Failure, replace_undecodable_bytes
from ci_bot.protocol.files import PrivateDirectories
from ci_bot.protocol.supported_versions import SQLMESH_VERSIONS_TEXT, is_supported, parse_release
from ci_bot.redaction import strip_terminal_codes_for_redaction
from ci_bot.worker.messages.load_failures import find_load_cause, iterate_causes_of_error
from ci_bot.worker.messages.names import name_file_in_message
from ci_bot.worker.runtime import java

# The most lines that are shown of a message.
MAX_LINES = 15
LINE_NUMBER = re.compile(r"\b[Ll]ine[: ]+(\d+)")
# SQLGlot's parser quotes the word at which it stopped as a dump of the whole token; the end of a
# text is a special token.
_TOKEN = re.compile(
    r"<Token token_type: (?:TokenType\.)?([^,>]*), text: (.*?), line: \d+, col: \d+, [^\n]*?\]>"
)
# SQLMesh quotes the whole query before the cause; a long query would hide the cause.
_MACROS_FAILED = re.compile(r"Failed to resolve macros for\s*\n\s*\n.*?\n\s*\n\s*(?=\S)", re.DOTALL)
_PY4J = re.compile(r"\AAn error occurred while calling \S+\s*:\s*")
_MACRO_REFUSED = "An argument of a macro would run as Python"
SPARK_IS_GONE = "Spark's Java process is gone: it ended by itself or was killed (out of memory?)."
_CAUSE = "Caused by: "
_STACK = re.compile(r"\s*(?:JVM stacktrace:|at [\w.$/<>]+\(|\.\.\. \d+ more)")


class MacroRefusedError(Exception):
    """The error for SQL in a macro's argument that would have run as Python.

    Args:
        effect: Its effect, as `sqlmesh_compat.macro_code.find_objection_to_macro_code` describes
            it.
    """

    def __init__(self, effect: str) -> None:
        super().__init__(
            f"{_MACRO_REFUSED}: {effect}. SQLMesh evaluates it, so it must be plain SQL."
        )


def find_message_of_macro_refusal(error: BaseException) -> str | None:
    """Finds the sentence of a macro refusal that led to `error`; None if none did.

    It searches the text, because SQLMesh wraps the refusal in other exceptions, and exceptions from
    a forked loader lose their causes.
    """
    found = re.search(rf"{_MACRO_REFUSED}: [^\n]*", str(error))
    return found.group(0) if found else None


class NotLoaded(BotError):
    """The error for a project that does not load.

    Args:
        failures: The failures, in the contract's form; the first is this error's message.
        units: The files that SQLMesh was loading when it failed.
        base: Why the base branch's project does not load; None if that was not tried.
    """

    reason_code = "failed"

    def __init__(
        self,
        failures: Sequence[Failure],
        *,
        units: Sequence[Path] = (),
        base: Sequence[Failure] | None = None,
    ) -> None:
        first = failures[0]
        super().__init__(
            first.message,
            hint=first.hint,
            reason_code=first.reason_code,
            path=first.path,
            line=first.line,
        )
        self.exit_code = first.exit_code
        self.failures = tuple(failures)
        self.units = tuple(units)
        self.base = None if base is None else tuple(base)


def find_root_cause_of_error(error: BaseException) -> BaseException:
    """Returns the first exception of the chain, which names the real problem."""
    *_, cause = iterate_causes_of_error(error)
    return cause


def extract_sentence_of_error(error: BaseException) -> str:
    """Returns the message of `error` without terminal colours and Java's stack."""
    if _is_error_of_ended_java(error):
        return SPARK_IS_GONE
    text = strip_terminal_codes_for_redaction(replace_undecodable_bytes(str(error))).strip()
    if not any(char.isalpha() for char in text) or isinstance(error, KeyError):
        # `raise ValueError(1)`, or a key alone: the error's type is more useful than its text.
        text = f"{type(error).__name__}: {text}".removesuffix(": ")
    text = _TOKEN.sub(_clean_token_of_parser_message, _PY4J.sub("", text))
    text = _MACROS_FAILED.sub("Failed to resolve its macros: ", text)
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    # Spark appends the JVM's stack to its messages; the reader needs the text before it, and the
    # last cause, which names the real problem.
    end = next((number for number, line in enumerate(lines) if _STACK.match(line)), len(lines))
    causes = [line for line in lines[end:] if line.startswith(_CAUSE)]
    shown = [*lines[:end][: MAX_LINES - 1], *causes[-1:]]
    return "\n".join(shown) or type(error).__name__


def extract_headline_of_error(error: BaseException) -> str:
    """Returns the first line of the message, before the plan or the causes that Spark adds."""
    return extract_sentence_of_error(error).splitlines()[0]


def extract_headline_of_error_with_cause(error: BaseException) -> str:
    """Returns `extract_headline_of_error`, and Java's last cause if it adds anything."""
    first, *others = extract_sentence_of_error(error).splitlines()
    cause = others[-1].removeprefix(_CAUSE) if others and others[-1].startswith(_CAUSE) else ""
    return f"{first.rstrip('.')}. The cause: {cause}" if cause and cause not in first else first


def _clean_token_of_parser_message(token: re.Match[str]) -> str:
    return "the end" if token[1] == "SENTINEL" else f"'{token[2]}'"


def _is_error_of_ended_java(error: BaseException) -> bool:
    """Whether py4j lost its connection to Java; its own error does not say so."""
    if type(error).__name__ != "Py4JNetworkError" and not isinstance(error, ConnectionError):
        return False
    step = error.__traceback__
    while step is not None:
        if str(step.tb_frame.f_globals.get("__name__", "")).startswith("py4j."):
            return True
        step = step.tb_next
    return False


def make_spark_start_error(
    error: BaseException,
    environ: Mapping[str, str],
    *,
    nameless: Callable[[Mapping[str, str]], str | None] = java.name_without_address_for_java,
) -> BadInput:
    """Makes the failure of a Spark session that does not start: Java, a jar, or the configuration.

    Args:
        environ: The environment in which Spark looked for Java.
        nameless: Returns this machine's name if it has no address, which Spark needs.
    """
    found, spark = java.find_java_runtime(environ), java.read_spark_version()
    where = "" if found is None else f" on {found}"
    name = nameless(environ)
    if name is not None:
        return BadInput(
            f"Spark does not start{where}: this machine's own name, `{name}`, has no address.",
            hint="Write the name into the machine's /etc/hosts, as a container engine does on its "
            "own networks, or set SPARK_LOCAL_IP to an address of the machine, and pass that with "
            "the input `worker-env`.",
            reason_code="spark_not_started",
        )
    return BadInput(
        f"Spark does not start{where}: "
        f"{extract_headline_of_error(find_root_cause_of_error(error))}",
        hint=f"{java.describe_java_versions(spark)} (JAVA_HOME, or `java` on the path). Check that "
        "this one is whole and that the gateway's `spark.*` settings fit; the log of this run has "
        "what Java and Spark report about it.",
        reason_code="spark_not_started",
    )


def make_cancelled_failure(activity: str) -> Failure:
    """Makes the failure of a run that was asked to stop."""
    return Failure(
        stage=activity,
        reason_code="cancelled",
        exit_code=EXIT_INTERRUPTED,
        message=f"The {activity} was cancelled.",
        hint="Run it again; it goes on from where it is.",
    )


def find_position_in_error_message(
    message: str, repository: Path, known_files: list[Path]
) -> tuple[str | None, int | None]:
    """Finds file (relative to the repository) and line in an error message, if any."""
    line = int(match.group(1)) if (match := LINE_NUMBER.search(message)) else None
    for file in known_files:
        if str(file) in message:
            return _make_path_of_error_message(file, repository), line
    for match in re.finditer(r"['\"]?(/[^\s'\":]+\.(?:sql|py|ya?ml|csv|sqlx))['\"]?", message):
        path = Path(match.group(1))
        if path.is_relative_to(repository):
            return _make_path_of_error_message(path, repository), line
    return None, None


def _make_path_of_error_message(path: Path, repository: Path) -> str:
    return replace_undecodable_bytes(name_file_in_message(path, repository))


def make_failure_of_error(
    error: BaseException,
    *,
    stage: str,
    repository: Path,
    hint: str | None = None,
    exit_code: int = EXIT_FAILED,
    reason_code: str | None = None,
) -> Failure:
    """Makes the contract's failure of `error`: our own errors keep their text, others are
    cleaned.
    """
    if isinstance(error, BotError):
        return Failure(
            stage=stage,
            reason_code=error.reason_code,
            exit_code=error.exit_code,
            message=error.message,
            hint=error.hint,
            path=error.path,
            line=error.line,
        )
    places, cause = PrivateDirectories({repository: ""}), find_load_cause(error, repository)
    if (refusal := find_message_of_macro_refusal(error)) is not None:
        hint = "Correct it and push. Do not load this branch elsewhere: there it would run."
        cause = replace(cause, message=refusal, hint=hint)
    text = extract_sentence_of_error(error)
    location = getattr(error, "location", None)
    path, line = find_position_in_error_message(
        text, repository, [Path(location)] if location else []
    )
    located = _make_path_of_error_message(Path(location), repository) if location else None
    if cause.path is not None and (cause.message is not None or located in (None, cause.path)):
        # The failing frame is more exact than the file of a whole model, or than a message.
        path, line = cause.path, cause.line or line
    else:
        path = path or located
    # Paths of the run's private copy mean nothing to the reader.
    return Failure(
        stage=stage,
        reason_code=reason_code
        or cause.reason_code
        or ("bad_input" if exit_code == EXIT_BAD_INPUT else "failed"),
        exit_code=exit_code,
        message=places.hide_in_text(replace_undecodable_bytes(cause.message or text)),
        hint=cause.hint or hint,
        path=path,
        line=line,
    )


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
    # The account may be right: the server has no rule for it without TLS ("SSL off" before 14).
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

    Returns:
        `RequestRefused` if another process has locked a DuckDB file, else `BadInput`.
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
    unset = list_unset_variables_for_state_error(projects, environ)
    why = f", because {_name_unset(unset)} not set" if unset and _NO_VALUE.search(text) else ""
    return BadInput(
        f"The state database ({engine}) cannot be read{why}: {first.strip()}",
        hint=_choose_hint(text, unset),
        reason_code="state_unreachable",
    )


def _name_unset(names: list[str]) -> str:
    shown = " and ".join(f"`{name}`" for name in names[:_VARIABLES_SHOWN])
    return f"{shown} {'is' if len(names) == 1 else 'are'}"


def _choose_hint(text: str, unset: list[str]) -> str:
    if _OTHER_DUCKDB.search(text):
        return (
            "The file was written by another version of DuckDB than that of this run "
            f"({metadata.version('duckdb')}). Pin prod's version, `duckdb==…`, in the file that "
            "the input `requirements` names."
        )
    if unset:
        return describe_missing_variables_in_hint(unset)
    if _NO_VALUE.search(text):
        return (
            "`None` appears for a variable that is not set: look for it in the gateway's "
            "`state_connection`, and pass it to the worker with the input `worker-env`."
        )
    return next((hint for cause, hint in _CAUSES if cause.search(text)), _ELSE)


def describe_missing_variables_in_hint(names: list[str]) -> str:
    """Describes variables without a value as a hint."""
    one = len(names) == 1
    shown = " and ".join(f"`{name}`" for name in names[:_VARIABLES_SHOWN])
    return (
        f"{'The variable' if one else 'The variables'} {shown}, which the configuration reads, "
        f"{'is' if one else 'are'} empty or not set in this run: pass {'it' if one else 'them'} "
        "to the worker with the input `worker-env`."
    )


def list_unset_variables_for_state_error(
    projects: Iterable[Path], environ: Mapping[str, str]
) -> list[str]:
    """Lists the variables of the state connection that have no value here."""
    from sqlmesh.core.config.common import ALL_CONFIG_FILENAMES

    named = {
        name
        for project in projects
        for file in ALL_CONFIG_FILENAMES
        for name in _list_variables_named_in_text(_read_configuration_text_of_state(project / file))
    }
    return sorted(name for name in named if not environ.get(name))


def _list_variables_named_in_text(text: str) -> Iterator[str]:
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


def _read_configuration_text_of_state(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


# The failure of a state that another version of SQLMesh wrote, with the fix.


_MIGRATE = "let the owner of prod upgrade it, which ends with `sqlmesh migrate`"
_NEVER = "This action never migrates a state."


def make_other_version_error(written_by: str, schema: int, *, installed: str) -> BadInput:
    """Makes the failure for a state that another version of SQLMesh wrote (exit code 2).

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
