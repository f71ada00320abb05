"""Take out of the image's packages what nothing here uses; standard library only.

    python slim.py packages                  tests, widgets, SQLMesh's web pages, time zones, stubs
    python slim.py jars [--keep-mllib]       Spark's jars for shells, Mesos, and machine learning
    python slim.py spark                     all of Spark but its Python: for the review's image

Run by the interpreter whose packages these are, before byte code is compiled and the class-data
archive is made. Whatever is named here and is not there ends with a non-zero exit, so that a new
version of a package cannot quietly bring its weight back.
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

# Widgets, and what completes code in a shell. IPython itself has to stay: SQLMesh's Python API
# imports it at each call. Their metadata stays, so to pip they are what they were.
NOTEBOOK = ("ipywidgets", "jedi", "jupyterlab-widgets", "parso", "widgetsnbextension")
# Pages of `sqlmesh ui`, which also its language server serves; Spark's samples.
UNUSED = ("web", "pyspark/data", "pyspark/examples")
# The world's time zones, three times: `zoneinfo` takes Debian's before those of a package.
ZONES = Path("/usr/share/zoneinfo")
# Interactive shells, Mesos, and the store of streaming's state and of history servers.
SHELLS = ("scala-compiler-", "spark-repl_", "mesos-", "spark-mesos_", "rocksdbjni-")
# What `pyspark.ml`, `pyspark.mllib` and GraphX run on.
MLLIB = (
    *("spark-mllib_", "spark-mllib-local_", "spark-graphx_", "breeze_", "breeze-macros_", "spire_"),
    *("spire-macros_", "spire-platform_", "spire-util_", "cats-kernel_", "algebra_"),
    *("arpack-", "arpack_combined_all-", "blas-", "lapack-", "JTransforms-", "JLargeArrays-"),
)

PY4J = Path(sys.prefix) / "share" / "py4j"  # its jar; Spark has one of its own


def remove(path: Path) -> None:
    """A file or a directory."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def packages(site: Path) -> None:
    """The parts of Python packages that nothing here imports."""
    for name in NOTEBOOK:
        for file in metadata.distribution(name).files or ():
            path = Path(str(file.locate()))
            if ".dist-info" not in str(file) and path.exists():
                path.unlink()
    for name in UNUSED:
        remove(site / name)
    if not ZONES.is_dir():
        sys.exit(f"there are no time zones in {ZONES}")
    remove(site / "tzdata" / "zoneinfo")
    remove(site / "pytz" / "zoneinfo")
    (site / "pytz" / "zoneinfo").symlink_to(ZONES)
    # For type checkers.
    for stub in site.rglob("*.pyi"):
        remove(stub)
    for tests in sorted(site.rglob("tests"), key=lambda path: len(path.parts)):
        if tests.is_dir():
            remove(tests)
    # What the files above have left.
    for directory in sorted(site.parents[2].rglob("*"), key=lambda path: -len(path.parts)):
        if directory.is_dir() and not directory.is_symlink() and not any(directory.iterdir()):
            directory.rmdir()


def jars(directory: Path, beginnings: tuple[str, ...]) -> None:
    """The jars whose names begin so; each beginning has to meet one."""
    for beginning in beginnings:
        found = sorted(directory.glob(f"{beginning}*.jar"))
        if not found:
            sys.exit(f"no jar begins with {beginning}")
        for jar in found:
            remove(jar)


def main(words: list[str]) -> None:
    site = Path(sysconfig.get_path("purelib"))
    spark = site / "pyspark"
    match words:
        case ["packages"]:
            packages(site)
        case ["jars"]:
            jars(spark / "jars", SHELLS + MLLIB)
        case ["jars", "--keep-mllib"]:
            jars(spark / "jars", SHELLS)
        case ["spark"]:
            for path in (spark / "jars", spark / "bin", spark / "sbin", PY4J):
                remove(path)
        case _:
            sys.exit(str(__doc__))


if __name__ == "__main__":
    main(sys.argv[1:])
