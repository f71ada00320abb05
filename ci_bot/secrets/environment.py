"""Which values of an environment are secrets.

What reaches the project's code is a secret unless the name of its variable is harmless: to take
out too much costs a `***`, to take out too little costs a password. Only names make a variable
harmless, never values: a password may begin with a slash, or be digits only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ci_bot.secrets.names import is_suspect, words
from ci_bot.secrets.parts import secret_parts

_HARMLESS = frozenset(
    (
        # The machine.
        *("PATH", "HOME", "TMPDIR", "TMP", "TEMP", "LANG", "LANGUAGE", "TZ", "PWD", "OLDPWD"),
        *("SHELL", "SHLVL", "TERM", "COLUMNS", "LINES", "NO_COLOR", "USER", "LOGNAME"),
        *("HOSTNAME", "CI", "PYTHONUTF8", "PYTHONPATH", "CLASSPATH", "VIRTUAL_ENV"),
        # Java, Spark and Hadoop.
        *("SPARK_MASTER", "SPARK_LOCAL_DIRS", "SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME"),
        *("SPARK_DIST_CLASSPATH", "HADOOP_CLASSPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"),
        # SQLMesh.
        *("SQLMESH__DEFAULT_GATEWAY", "SQLMESH__PROJECT", "SQLMESH__LOG_LIMIT"),
        *("SQLMESH__DISABLE_ANONYMIZED_ANALYTICS", "SQLMESH_DEBUG", "MAX_FORK_WORKERS"),
        # By its documentation it holds a file's name.
        "GOOGLE_APPLICATION_CREDENTIALS",
    )
)
_HARMLESS_SECTIONS = ("LC_", "JAVA_HOME_", "SQLMESH__MODEL_DEFAULTS__", "SQLMESH__PLAN__")
# The last word of names whose values are places on the machine, sizes, or words that the plan
# itself is made of. Users and hosts are not here: a token may be a user, and where a warehouse is
# may be nobody's business.
_HARMLESS_ENDS = frozenset({
    "home", "dir", "dirs", "region", "port", "database", "schema", "catalog", "gateway",
    "dialect", "type", "version", "memory", "cores", "level", "timezone", "date", "tasks",
})  # fmt: skip


_SETTING = re.compile(
    r"""(?mx) ^[ \t]* (?:export[ \t]+)? (?P<name>[A-Za-z_]\w*) [ \t]*=[ \t]*
    (?: "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>[^']*)' | (?P<bare>[^\n]*?) )
    [ \t]* (?:\#.*)? $"""
)


def from_dotenv(text: str) -> dict[str, str]:
    """The variables of a .env file, which SQLMesh reads by itself; what is no setting is left."""
    return {
        found["name"]: found["double"] or found["single"] or found["bare"] or ""
        for found in _SETTING.finditer(text)
    }


def is_harmless(name: str) -> bool:
    """Whether the name of a variable says that its value as a whole is no secret."""
    upper = name.upper()
    if upper in _HARMLESS or upper.startswith(_HARMLESS_SECTIONS):
        return True
    found = words(name)
    return bool(found) and found[-1] in _HARMLESS_ENDS and not is_suspect("_".join(found[:-1]))


def secret_values(environ: Mapping[str, str], passed: Callable[[str], bool]) -> Iterator[str]:
    """The values of an environment that no text may show, and the secret parts of all values.

    Args:
        environ: The environment of the bot.
        passed: Whether a variable is meant for the project's code. Its value is a secret unless
            its name is harmless. Of all other variables, those are secrets whose name says so: a
            laptop's project sees all of them, and without PATH and USER no report can be read.
    """
    for name, value in environ.items():
        secret = not is_harmless(name) and (passed(name) or is_suspect(name))
        if secret:
            yield value
        # A hash is no secret in a variable that says nothing of the kind.
        yield from secret_parts(value, also_random=secret)
