"""Give an installed Spark a class-data archive, so that it starts in half the time.

Run once while the image is built, and once for the tests' environment, by the interpreter that has
pyspark and with the Java of JAVA_HOME (the image's, if it is not set). Writes into pyspark's own
directory (SPARK_HOME): `ordered-classpath.jar`, `spark-classes.jsa` and `conf/`. Why each of them
exists is said in spark-defaults.conf next to this file. Any failure ends with a non-zero exit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pyspark

HERE = Path(__file__).resolve().parent
SPARK_HOME = Path(pyspark.__file__).resolve().parent
CLASSPATH_JAR = SPARK_HOME / "ordered-classpath.jar"
# An archive fits one JVM only.
JAVA = f"{os.environ.get('JAVA_HOME', '/opt/java')}/bin/java"
ARCHIVE = SPARK_HOME / "spark-classes.jsa"
MANIFEST_LINE_BYTES = 72  # the jar specification's limit, line end not counted


def manifest(jars: list[str]) -> str:
    """The manifest whose Class-Path names `jars` (relative to the jar that holds it)."""
    text = "Class-Path: " + " ".join(jars)
    lines = [text[:MANIFEST_LINE_BYTES]]
    rest = text[MANIFEST_LINE_BYTES:]
    step = MANIFEST_LINE_BYTES - 1  # a continuation line starts with one space
    lines += [" " + rest[i : i + step] for i in range(0, len(rest), step)]
    return "\r\n".join(["Manifest-Version: 1.0", *lines, "", ""])


def write_classpath_jar() -> None:
    """A jar without classes that puts Spark's jars into alphabetical order."""
    jars = sorted(path.name for path in (SPARK_HOME / "jars").glob("*.jar"))
    if not jars:
        sys.exit(f"no jars below {SPARK_HOME}")
    with zipfile.ZipFile(CLASSPATH_JAR, "w") as jar:
        # Relative and below this jar's own directory: the JVM's archive compares plain path
        # strings and would not recognise a jar behind `..`.
        # Its date is the earliest that there is, so that two builds are alike.
        entry = zipfile.ZipInfo("META-INF/MANIFEST.MF")
        jar.writestr(entry, manifest([f"jars/{name}" for name in jars]))


def write_conf() -> None:
    """Spark's configuration directory, with the place of SPARK_HOME filled in."""
    conf = SPARK_HOME / "conf"
    conf.mkdir(exist_ok=True)
    defaults = (HERE / "spark-defaults.conf").read_text("utf-8")
    (conf / "spark-defaults.conf").write_text(
        defaults.replace("@SPARK_HOME@", str(SPARK_HOME)), "utf-8"
    )
    shutil.copyfile(HERE / "spark-env.sh", conf / "spark-env.sh")


def record_classes(work: Path) -> Path:
    """Run a small session of the kind that the bot runs; returns the list of loaded classes."""
    classes = work / "classes.lst"
    exercise = [
        sys.executable,
        str(HERE / "exercise_spark.py"),
        f"-XX:DumpLoadedClassList={classes}",
    ]
    # A base image need not have another Python for Spark's workers than this one.
    python = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    subprocess.run(exercise, cwd=work, env=python, check=True)
    if not classes.is_file():
        sys.exit("the exercise left no list of classes")
    return classes


def write_archive(classes: Path) -> None:
    """Dump the archive for exactly the class path that starts with the ordered jar."""
    subprocess.run(
        [
            JAVA,
            "-Xshare:dump",
            f"-XX:SharedClassListFile={classes}",
            f"-XX:SharedArchiveFile={ARCHIVE}",
            # Thousands of lines about classes that cannot be archived (signed, too old).
            "-Xlog:cds=off",
            "-Xlog:cds+class=off",
            "-cp",
            str(CLASSPATH_JAR),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    if not ARCHIVE.is_file():
        sys.exit("the JVM wrote no archive")


def main() -> None:
    """All four files, or a non-zero exit."""
    with tempfile.TemporaryDirectory() as work:
        write_classpath_jar()
        classes = record_classes(Path(work))
        write_archive(classes)
        write_conf()


if __name__ == "__main__":
    main()
