"""Servers for a state that tests start and stop themselves: MariaDB, and a pooler of PostgreSQL."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.servers import free_port

START_SECONDS = 60.0
USER, PASSWORD, DATABASE = "ci_bot", "of-a-test", "state"
# Where Debian puts servers; not on everybody's path.
PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"


def installed(name: str) -> Path | None:
    """The program, if this machine has it."""
    found = shutil.which(name, path=PLACES)
    return Path(found).resolve() if found else None


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
        f"GRANT ALL ON *.* TO '{USER}'@'%';\n"
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
    if os.geteuid() == 0:
        # It does not run as root, and has to get to its files.
        for path in (root, *root.iterdir()):
            shutil.chown(path, "nobody")
        for above in root.parents:
            if above.stat().st_uid == 0 and above != Path("/"):
                above.chmod(above.stat().st_mode | 0o011)
        command += ["-u", "nobody"]
    with _running(command, root / "log", lambda: _listens(port)):
        yield f"postgresql://{parts.username}:{parts.password}@127.0.0.1:{port}{parts.path}"


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def _running(command: Sequence[str], log: Path, ready: Callable[[], bool]) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=log.parent, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            if time.monotonic() > deadline or process.poll() is not None:
                raise RuntimeError(f"the server did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.wait()
