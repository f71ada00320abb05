"""Give the image's packages their byte code, and pack pip into one file; standard library only.

    python -B byte_code.py

Run by the interpreter whose packages these are, after slim.py. Whoever pulls the image pays for
each file more than for its bytes. So of packages that hold far more than SQLMesh and PySpark
import, only that much is compiled; the rest is compiled where it is imported, each time anew. pip,
which only a project's own requirements need, is imported from an archive, as `ensurepip` does it.
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

PARTLY = (
    *("IPython", "cryptography", "dateparser", "humanize", "markdown_it", "numpy", "pandas"),
    *("prompt_toolkit", "pygments", "pyspark", "rich", "setuptools"),
)
# What a review, an apply and Spark's own Python processes begin with.
IMPORTED = (
    *("sqlmesh.magics", "sqlmesh.core.context", "sqlmesh.core.test", "sqlmesh.core.console"),
    *("pyspark.daemon", "pyspark.worker", "pyspark.sql.functions", "pyspark.sql.pandas.types"),
    *("pyspark.sql.pandas.conversion", "pyspark.sql.pandas.serializers", "pandas", "jwt"),
    *("rich.progress", "rich.syntax", "rich.tree", "pygments.lexers.sql", "pygments.lexers.diff"),
)
# Compiled once and never checked against the source again: the image does not change, and the
# worker's account could not write the result anyway. -f, because what an interpreter wrote as it
# started names the time of its source: another one in each build.
COMPILE = ("-m", "compileall", "-f", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash")
BUILT = (1980, 1, 1, 0, 0, 0)  # the first date that an archive can hold


def imported() -> set[Path]:
    """The files of the modules that the work begins with."""
    for name in IMPORTED:
        importlib.import_module(name)
    # SQLMesh reads relative dates with it, and each language is a module.
    importlib.import_module("dateparser").parse("1 day ago")
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return {Path(file).resolve() for file in files if file}


def compile_packages(site: Path) -> None:
    """Byte code for all modules but those of `PARTLY` that are not imported."""
    for name in PARTLY:
        if not (site / name).is_dir():
            sys.exit(f"there is no {name}")
    used = imported()
    chosen = [
        file
        for file in sorted(site.rglob("*.py"))
        if file.relative_to(site).parts[0] not in PARTLY or file.resolve() in used
    ]
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as listed:
        listed.write("".join(f"{file}\n" for file in chosen))
        listed.flush()
        subprocess.run([sys.executable, *COMPILE, "-i", listed.name], check=True)


def pack_pip(site: Path) -> None:
    """pip as `pip.zip`, with its byte code beside its sources, on the path by `pip.pth`."""
    package = site / "pip"
    shutil.rmtree(package / "__pycache__", ignore_errors=True)
    subprocess.run([sys.executable, *COMPILE, "-b", str(package)], check=True)
    with zipfile.ZipFile(site / "pip.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(package.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                name = zipfile.ZipInfo(file.relative_to(site).as_posix(), BUILT)
                archive.writestr(name, file.read_bytes(), zipfile.ZIP_DEFLATED)
    shutil.rmtree(package)
    (site / "pip.pth").write_text("pip.zip\n", encoding="utf-8")


def main() -> None:
    site = Path(sysconfig.get_path("purelib")).resolve()
    # First, so that nothing of it is compiled for the directory.
    pack_pip(site)
    compile_packages(site)


if __name__ == "__main__":
    main()
