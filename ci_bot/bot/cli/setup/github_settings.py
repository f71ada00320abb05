"""Which GitHub secret or variable each variable of a configuration gets, in which environment.

A review has its own account, which reads; an apply and a cleanup have one that writes. So the
settings that name or open the state's account have two names on GitHub, and all others have one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ci_bot.bot.cli.setup.read_configuration import SetupConfigVariable
from ci_bot.redaction import SettingContent, classify_secret_setting, is_name_of_secret

SetupLevel = Literal["review", "apply", "full"]
LEVELS: tuple[SetupLevel, ...] = ("review", "apply", "full")
# The kind of a job: each has its own environment, except that a sweep is a cleanup.
SetupJob = Literal["review", "apply", "cleanup", "deploy"]

ENVIRONMENTS: dict[SetupJob, str] = {
    "review": "sqlmesh-review",
    "apply": "sqlmesh-apply",
    "cleanup": "sqlmesh-cleanup",
    "deploy": "sqlmesh-prod",
}
# The value of a variable that a review never uses, if the configuration does not load without it.
# The bot hides the values that it passes on in every text, so this must not be an ordinary word.
UNUSED = "not-needed-by-reviews"
_UNUSED_PORT = "1"

# These are passed on although `worker-env` does not name them.
_PASSED_ON = ("SQLMESH_", "SPARK_", "PYSPARK_", "JAVA_", "HADOOP_")
# Names of the machine and of GitHub: no secret or variable may or should have one of them.
_OF_THE_MACHINE = re.compile(
    r"(?:GITHUB_|ACTIONS_|RUNNER_|INPUT_|CI_BOT_).*"
    r"|CI|HOME|PATH|USER|USERNAME|LOGNAME|SHELL|PWD|TMPDIR|TMP|TEMP|LANG|LC_ALL|TERM|ENV|HOSTNAME"
    r"|LD_PRELOAD|LD_LIBRARY_PATH|LD_AUDIT|BASH_ENV|PYTHONPATH|VIRTUAL_ENV"
)
_ACCOUNT = re.compile(r"(?:^|_)(?:USER|USERNAME|USER_NAME|LOGIN|ROLE|ACCOUNT)$", re.IGNORECASE)
_ACCOUNT_KEYS = frozenset({"user", "username", "user_name", "login", "role"})
# An address that may contain a password.
_ADDRESS_WITH_PASSWORD = re.compile(
    r"(?:^|_)(?:DSN|CONN(?:ECTION)?_?STR(?:ING)?|(?:DATABASE|DB|STATE|POSTGRES|PG|MYSQL|JDBC|CONNECTION)_UR[LI])$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SetupJobVariable:
    """A variable of the project, in the form in which a job gets it.

    Attributes:
        name: As the configuration reads it.
        source: Where its value is on GitHub: `secrets`, `vars`, or `written` if it is not there.
        github: Its name there.
        value: The text in the workflow's file.
    """

    name: str
    source: Literal["secrets", "vars", "written"]
    github: str
    value: str


def is_setup_variable_secret(variable: SetupConfigVariable) -> bool:
    """Whether a variable's value is secret, by its name and by the setting that gets it."""
    if variable.key and classify_secret_setting(variable.key) is not SettingContent.NOTHING:
        return True
    return is_name_of_secret(variable.name) or bool(_ADDRESS_WITH_PASSWORD.search(variable.name))


def list_github_settings(
    variables: Iterable[SetupConfigVariable], level: SetupLevel, job: SetupJob
) -> list[SetupJobVariable]:
    """Lists the variables that a job has to get, those of the state first.

    A variable with a default is left out: an empty value would replace the default.
    """
    wanted = [
        setting
        for variable in variables
        if not _OF_THE_MACHINE.fullmatch(variable.name)
        and (setting := _choose_github_setting(variable, level, job)) is not None
    ]
    order = {each.name: ("state", "warehouse", "other").index(each.scope) for each in variables}
    return sorted(wanted, key=lambda each: order[each.name])


def list_optional_settings(variables: Iterable[SetupConfigVariable], job: SetupJob) -> list[str]:
    """Lists the variables that keep the configuration's default, but that a job can use."""
    return [
        each.name
        for each in variables
        if each.has_default
        and not _OF_THE_MACHINE.fullmatch(each.name)
        and not (job == "review" and each.scope == "warehouse")
    ]


def list_worker_env(
    settings: Iterable[SetupJobVariable], variables: Iterable[SetupConfigVariable]
) -> list[str]:
    """Lists the names for `worker-env`, or one prefix for several names of one family.

    With a prefix, a variable that the configuration gets later passes, too. Only variables that the
    step's `env:` names can pass at all.
    """
    families: dict[str, set[str]] = {}
    for variable in variables:
        families.setdefault(_get_family(variable.name), set()).add(variable.name)
    named = [each.name for each in settings if not each.name.startswith(_PASSED_ON)]
    return list(
        dict.fromkeys(
            f"{family}*" if (family := _get_family(name)) and len(families[family]) > 1 else name
            for name in named
        )
    )


def _get_family(name: str) -> str:
    """Returns `STATE_` for `STATE_HOST`; empty if the name has one word."""
    first, separator, _ = name.partition("_")
    return f"{first}_" if separator and first else ""


def _choose_github_setting(
    variable: SetupConfigVariable, level: SetupLevel, job: SetupJob
) -> SetupJobVariable | None:
    """Chooses how a job gets one variable; None if the job does not need it."""
    if variable.has_default:
        return None
    if job == "review" and (level == "review" or variable.scope == "warehouse"):
        return _make_unused_variable(variable)
    secret = is_setup_variable_secret(variable)
    name = variable.name
    if variable.scope == "state" and (secret or _is_account(variable)):
        github = _derive_account_name(name, "READER" if job == "review" else "WRITER")
    elif job == "deploy" and secret:
        github = f"PROD_{name}"
    else:
        github = name
    source: Literal["secrets", "vars"] = "secrets" if secret else "vars"
    return SetupJobVariable(name, source, github, f"${{{{ {source}.{github} }}}}")


def _make_unused_variable(variable: SetupConfigVariable) -> SetupJobVariable | None:
    """Makes a variable for a job that never connects with it.

    Without it a YAML configuration gets the word `None`, which is no number, and a Python one may
    not load at all. If it is not secret, it may still be set, for models that read it.
    """
    is_number = variable.name.upper().endswith("PORT") or variable.key.endswith("port")
    value = _UNUSED_PORT if is_number else UNUSED
    if variable.scope == "other" and not is_setup_variable_secret(variable):
        # The project may use it for more than a connection, so a team can set it.
        expression = f"${{{{ vars.{variable.name} || '{value}' }}}}"
        return SetupJobVariable(variable.name, "vars", variable.name, expression)
    if variable.is_required or is_number:
        return SetupJobVariable(variable.name, "written", "", f'"{value}"' if is_number else value)
    return None


def _is_account(variable: SetupConfigVariable) -> bool:
    return variable.key in _ACCOUNT_KEYS or bool(_ACCOUNT.search(variable.name))


def _derive_account_name(name: str, role: str) -> str:
    """Returns `STATE_WRITER` for `STATE_USER`, `STATE_WRITER_PASSWORD` for `STATE_PASSWORD`."""
    if _ACCOUNT.search(name) and "_" in name:
        return _ACCOUNT.sub(f"_{role}", name)
    before, separator, last = name.rpartition("_")
    if not separator:
        return f"{name}_{role}"
    return f"{before}_{role}_{last}"
