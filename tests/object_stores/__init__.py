"""Object stores on loopback, for Spark's file systems of the clouds.

S3 is the Versity gateway, which keeps objects as files; Google Cloud Storage is fake-gcs-server. Both
are built by the hashes in the go.sum of their directories here; the first time that takes minutes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.go_programs import built
from tests.servers import free_port, serving

HERE = Path(__file__).resolve().parent
BUCKET = "lake"


@dataclass(frozen=True)
class ObjectStore:
    """A bucket that one server keeps.

    Attributes:
        place: Its address, as Spark writes it.
        files: The directory in which the server keeps the bucket's objects, each by its key.
        spark: What a session needs beside jars, as `spark.*`.
        variables: Credentials, as a cloud's login action leaves them.
    """

    place: str
    files: Path
    spark: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict)

    def objects(self) -> set[str]:
        """The keys of everything with content in the bucket."""
        found = (path for path in self.files.rglob("*") if path.is_file())
        return {str(path.relative_to(self.files)) for path in found if path.stat().st_size}


@contextmanager
def s3(root: Path) -> Iterator[ObjectStore]:
    """A bucket behind S3's protocol, which asks for signed requests.

    Raises:
        GoProgramMissingError: no Go could build the server.
        RuntimeError: it did not start in time.
    """
    program = built(HERE / "s3", "github.com/versity/versitygw/cmd/versitygw", os.environ)
    port, kept = free_port(), root / "kept"
    (kept / BUCKET).mkdir(parents=True)
    secret = {"AWS_ACCESS_KEY_ID": "object-store-key", "AWS_SECRET_ACCESS_KEY": "s3cr3t/0f+Objects"}
    server = [
        *(program, "--port", f"127.0.0.1:{port}", "--quiet"),
        # What it knows of an object beside its content lies apart: not every file system has room.
        *("posix", "--sidecar", root / "facts", kept),
    ]
    (root / "facts").mkdir()
    account = {
        "ROOT_ACCESS_KEY_ID": secret["AWS_ACCESS_KEY_ID"],
        "ROOT_SECRET_ACCESS_KEY": secret["AWS_SECRET_ACCESS_KEY"],
    }
    with serving(server, port, root / "s3.log", {**os.environ, **account}):
        settings = {
            "spark.hadoop.fs.s3a.endpoint": f"http://127.0.0.1:{port}",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            # A key is a path to the gateway, which does not delete the parent's that others are in.
            "spark.hadoop.fs.s3a.directory.marker.retention": "keep",
        }
        yield ObjectStore(f"s3a://{BUCKET}", kept / BUCKET, settings, secret)


@contextmanager
def gcs(root: Path) -> Iterator[ObjectStore]:
    """A bucket behind the JSON interface of Google Cloud Storage; it asks for no credentials.

    Raises:
        GoProgramMissingError: no Go could build the server.
        RuntimeError: it did not start in time.
    """
    program = built(HERE / "gcs", "github.com/fsouza/fake-gcs-server", os.environ)
    port, kept = free_port(), root / "kept"
    (kept / BUCKET).mkdir(parents=True)
    address = f"127.0.0.1:{port}"
    server = [
        *(program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)),
        *("-public-host", address, "-external-url", f"http://{address}"),
        *("-backend", "filesystem", "-filesystem-root", kept, "-log-level", "warn"),
    ]
    with serving(server, port, root / "gcs.log", os.environ):
        settings = {
            "spark.hadoop.fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
            "spark.hadoop.fs.gs.storage.root.url": f"http://{address}/",
            "spark.hadoop.fs.gs.auth.null.enable": "true",
            "spark.hadoop.fs.gs.auth.service.account.enable": "false",
        }
        yield ObjectStore(f"gs://{BUCKET}", kept / BUCKET, settings)
