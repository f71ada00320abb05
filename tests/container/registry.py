"""An image registry on loopback, for what publishes and pulls: Debian's `docker-registry`."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import free_port, wait_for_port

REGISTRY = """\
version: 0.1
storage: {{filesystem: {{rootdirectory: {root}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@contextmanager
def registry(home: Path) -> Iterator[str]:
    """An image registry on loopback; gives its address."""
    port = free_port()
    settings = home / "registry.yml"
    settings.write_text(REGISTRY.format(root=home / "registry", port=port), encoding="utf-8")
    with (home / "registry.log").open("wb") as log:
        process = subprocess.Popen(
            [registry_program(home), "serve", settings],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        wait_for_port(process, port, home / "registry.log")
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def registry_program(home: Path) -> Path:
    """`docker-registry` of the PATH, else unpacked from Debian's package into `home`."""
    own = shutil.which("docker-registry")
    if own:
        return Path(own)
    package = home / "docker-registry"
    package.mkdir()
    subprocess.run(
        ["/usr/bin/apt-get", "-qq", "download", "docker-registry"],
        cwd=package,
        check=True,
        capture_output=True,
    )
    (archive,) = package.glob("*.deb")
    subprocess.run(["/usr/bin/dpkg", "-x", archive, package], check=True)
    return package / "usr" / "bin" / "docker-registry"
