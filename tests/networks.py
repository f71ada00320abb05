"""Machines of a network, as far as the kernel makes one: each a namespace with an address of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

# Of 198.18.0.0/15, which RFC 2544 keeps for tests of networks.
NETWORK = "198.18.77"


class NoNetworkError(Exception):
    """This machine, or its user, may not make a network; the text has the program's words."""


_LISTEN = """\
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
with socket.socket(fileno=int(sys.argv[2])) as channel:
    socket.send_fds(channel, [b"."], [listener.fileno()])
"""


@dataclass(frozen=True)
class NetworkMachine:
    """One machine. A command with `prefix` in front of it runs there."""

    address: str
    prefix: tuple[str, ...]

    def only_lets_in(self, *ports: int) -> None:
        """Drops what others send to any other port."""
        for rule in (
            ["-P", "INPUT", "DROP"],
            ["-A", "INPUT", "-i", "lo", "-j", "ACCEPT"],
            ["-A", "INPUT", "-m", "conntrack", "--ctstate", "ESTABLISHED", "-j", "ACCEPT"],
            *(["-A", "INPUT", "-p", "tcp", "--dport", str(port), "-j", "ACCEPT"] for port in ports),
        ):
            _run(*self.prefix, _program("iptables"), *rule)

    @contextmanager
    def reaches(self, port: int) -> Iterator[None]:
        """Lets it reach a port of this process's loopback at the same port of its own."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            # A socket stays in the namespace in which it was made, whoever holds it.
            _run(*self.prefix, sys.executable, "-c", _LISTEN, str(port), str(theirs.fileno()),
                 keep=theirs.fileno())  # fmt: skip
            _, (listening, *_), *_ = socket.recv_fds(ours, 1, 1)
        with socket.socket(fileno=listening) as listener:
            threading.Thread(target=_relay, args=(listener, port), daemon=True).start()
            try:
                yield
            finally:
                # Closing alone does not wake who waits in accept().
                listener.shutdown(socket.SHUT_RDWR)

    def interpreter(self, python: str, file: Path) -> str:
        """A program that is a Python on this machine; written to `file`."""
        words = " ".join([*self.prefix, python])
        file.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
        file.chmod(0o755)
        return str(file)


@contextmanager
def network(*names: str, **running: int) -> Iterator[Sequence[NetworkMachine]]:
    """Machines with these names, on one switch, which nobody else reaches.

    Args:
        names: Machines to make.
        running: Machines that are there, as a container is: a process in each. They come last.

    Raises:
        NoNetworkError: it takes root, `ip`, `iptables`, and a kernel that makes such things.
    """
    ip, tag = _program("ip"), f"ci{os.getpid()}"
    switch = f"{tag}s"
    spaces = [f"{tag}-{name}" for name in (*names, *running, "switch")]
    made: list[NetworkMachine] = []
    try:
        for space in spaces:
            pid = running.get(space.removeprefix(f"{tag}-"))
            _run(ip, "netns", *(("add", space) if pid is None else ("attach", space, str(pid))))
            _run(ip, "-n", space, "link", "set", "lo", "up")
        _run(ip, "-n", spaces[-1], "link", "add", switch, "type", "bridge")
        _run(ip, "-n", spaces[-1], "link", "set", switch, "up")
        for number, space in enumerate(spaces[:-1], start=1):
            port, address = f"{tag}p{number}", f"{NETWORK}.{number}"
            _run(ip, "-n", space, "link", "add", "eth0", "type", "veth",
                 "peer", "name", port, "netns", spaces[-1])  # fmt: skip
            _run(ip, "-n", space, "address", "add", f"{address}/24", "dev", "eth0")
            _run(ip, "-n", space, "link", "set", "eth0", "up")
            _run(ip, "-n", spaces[-1], "link", "set", port, "master", switch, "up")
            made.append(NetworkMachine(address, (ip, "netns", "exec", space)))
        yield made
    finally:
        # With a namespace go the interfaces in it.
        for space in spaces:
            subprocess.run([ip, "netns", "delete", space], capture_output=True, check=False)


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise NoNetworkError(f"there is no {name} on this machine")
    return found


def _relay(listener: socket.socket, port: int) -> None:
    """Hands each connection on to this port of our loopback, until the listener is shut."""
    with suppress(OSError):
        while True:
            near, _ = listener.accept()
            far = socket.create_connection(("127.0.0.1", port))
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=_pour, args=(source, target), daemon=True).start()


def _pour(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _run(*command: str, keep: int | None = None) -> None:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        pass_fds=() if keep is None else (keep,),
    )
    if done.returncode:
        raise NoNetworkError(f"{' '.join(command)}: {done.stderr.strip()}")
