"""Jars from Maven Central that tests need, each pinned by its hash and kept in a cache.

Tried in order: a plain download, then `mvn`, which knows the mirror and the certificates that a
machine's Maven settings name. CI_BOT_TEST_MAVEN is the address of another repository in Maven's
layout; CI_BOT_TEST_PARTS moves the cache, as it does for the stand-in's parts.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
import tempfile
import urllib.request
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DOWNLOAD_SECONDS = 120
# Silence this long means that a machine without a way out drops what is sent.
CONNECT_SECONDS = 20
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


class JarMissingError(Exception):
    """A jar could not be had; the text says what was tried."""


@dataclass(frozen=True)
class Artifact:
    """A jar by its coordinates, and the hash that its content must have."""

    group: str
    name: str
    version: str
    sha256: str
    classifier: str = ""

    @property
    def file(self) -> str:
        return "-".join(filter(None, (self.name, self.version, self.classifier))) + ".jar"

    @property
    def path(self) -> str:
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}/{self.file}"


ICEBERG = Artifact(
    "org.apache.iceberg",
    "iceberg-spark-runtime-3.5_2.12",
    "1.10.1",
    "39ea09e6c03550a300b9d9ab498949836d2d434e441da4c12a943a086e396940",
)
SQLITE = Artifact(
    "org.xerial",
    "sqlite-jdbc",
    "3.50.3.0",
    "a3f53a2aa15ae9425a9e793bbe9c8e5288febeb4b65ef5c1a4e80d4c2045cf08",
)

# All that Iceberg's own REST catalog server needs, in one jar of 212 MB.
ICEBERG_REST = Artifact(
    "org.apache.iceberg",
    "iceberg-open-api",
    "1.10.1",
    "09e6aef58984eaa58bf1e1bc5193ad023e929c6bfd38c82db7b83ffe825af724",
)
DELTA = Artifact(
    "io.delta",
    "delta-spark_2.12",
    "3.3.2",
    "4e92085d5d794cf949c50bb665b91384857cad58680c2d0bfc9c7ad353e98e85",
)
DELTA_STORAGE = Artifact(
    "io.delta",
    "delta-storage",
    "3.3.2",
    "c096975a2ca97ccc9b4005aa5cce16c9ac3903139d340da6665b66ace67d7c36",
)

# The file systems of clouds for the Hadoop in PySpark 3.5, which is 3.3.4.
HADOOP_AWS = Artifact(
    "org.apache.hadoop",
    "hadoop-aws",
    "3.3.4",
    "53f9ae03c681a30a50aa17524bd9790ab596b28481858e54efd989a826ed3a4a",
)
# The one that hadoop-aws was built with; 281 MB.
AWS_SDK = Artifact(
    "com.amazonaws",
    "aws-java-sdk-bundle",
    "1.12.262",
    "873fe7cf495126619997bec21c44de5d992544aea7e632fdc77adb1a0915bae5",
)
GCS_CONNECTOR = Artifact(
    "com.google.cloud.bigdataoss",
    "gcs-connector",
    "hadoop3-2.2.26",
    "cbaa2773283c2237f933f48deb77a6f912619e367b26efe186aee74f4b35d89c",
    classifier="shaded",
)


def jar(artifact: Artifact, env: Mapping[str, str]) -> Path:
    """The file of an artifact, downloaded where the cache does not hold it.

    Raises:
        JarMissingError: neither a download nor `mvn` brought a file with the pinned hash.
    """
    cache = parts_directory(env) / "jars"
    target = cache / artifact.file
    if _is(artifact, target):
        return target
    cache.mkdir(parents=True, exist_ok=True)
    tried = []
    with tempfile.TemporaryDirectory(dir=cache) as directory:
        fresh = Path(directory) / artifact.file
        for bring in (_download, _copy_with_mvn):
            try:
                bring(artifact, fresh, env)
            except JarMissingError as error:
                tried.append(str(error))
                continue
            if _is(artifact, fresh):
                # In one step: another test run may want the same file at this moment.
                fresh.replace(target)
                return target
            tried.append(f"{bring.__name__.strip('_')}: the content is not the pinned one")
    raise JarMissingError(f"{artifact.file} could not be had ({'; '.join(tried)})")


def parts_directory(env: Mapping[str, str]) -> Path:
    """Where the parts of tests are kept between runs."""
    given = env.get("CI_BOT_TEST_PARTS")
    return Path(given).expanduser() if given else Path.home() / ".cache" / "ci-bot-tests"


def _is(artifact: Artifact, file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == artifact.sha256


def _download(artifact: Artifact, target: Path, env: Mapping[str, str]) -> None:
    repository = env.get("CI_BOT_TEST_MAVEN") or maven_central()
    try:
        with (
            urllib.request.urlopen(
                f"{repository.rstrip('/')}/{artifact.path}", timeout=CONNECT_SECONDS
            ) as answer,
            target.open("wb") as file,
        ):
            shutil.copyfileobj(answer, file)
    except (OSError, ValueError) as error:
        raise JarMissingError(f"download: {error}") from error


def _copy_with_mvn(artifact: Artifact, target: Path, env: Mapping[str, str]) -> None:
    mvn = shutil.which("mvn", path=env.get("PATH"))
    if mvn is None:
        raise JarMissingError("mvn: not on the path")
    coordinates = f"{artifact.group}:{artifact.name}:{artifact.version}"
    if artifact.classifier:
        coordinates += f":jar:{artifact.classifier}"
    command = [
        *(mvn, "--batch-mode", "--quiet", _COPY),
        *(f"-Dartifact={coordinates}", f"-DoutputDirectory={target.parent}"),
    ]
    try:
        done = subprocess.run(
            command,
            cwd=target.parent,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise JarMissingError(f"mvn: no answer in {DOWNLOAD_SECONDS} s") from error
    if done.returncode:
        raise JarMissingError(f"mvn: {(done.stdout.strip() or 'failed').splitlines()[0][:300]}")


def maven_central() -> str:
    """The address of Maven Central, as the Ivy in PySpark's jars knows it.

    Spark itself loads `spark.jars.packages` from there; this asks it for the address only, because
    the wheel's Java does not know the certificates that a machine has added.

    Raises:
        JarMissingError: PySpark or its Ivy is not there.
    """
    found = importlib.util.find_spec("pyspark")
    jars = Path(found.origin).parent / "jars" if found and found.origin else Path()
    for ivy in jars.glob("ivy-*.jar"):
        with zipfile.ZipFile(ivy) as archive:
            resolver = archive.read("org/apache/ivy/plugins/resolver/IBiblioResolver.class")
        address = re.search(rb"https://[\w./-]+/maven2/", resolver)
        if address:
            return address.group().decode("ascii")
    raise JarMissingError("download: PySpark's Ivy does not say where Maven Central is")
