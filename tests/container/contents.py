"""What an image holds, without its times: to compare two builds of one commit.

python -m tests.container.contents IMAGE OTHER_IMAGE      prints what differs; exit 1 if anything
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Mapping

from tests.container.engine import Engine, find_engine

# What a build writes anew each time, and why nobody runs anything else because of it.
OWN_EACH_TIME = {
    r"opt/ci-bot/lib/.*/pyspark/spark-classes\.jsa": "a recording of which classes a session loads",
    r"etc/ssl/certs/java/cacerts": "each certificate has the date on which it was put there",
    r"(etc/hostname|etc/hosts|etc/resolv\.conf|\.dockerenv|etc/mtab)": "the engine's own",
    r"(dev|proc|sys)/.*": "the engine's own",
}
_EXCUSED = re.compile("|".join(f"(?:{pattern})" for pattern in OWN_EACH_TIME))


def contents(engine: Engine, image: str) -> dict[str, tuple[str, ...]]:
    """Each path of an image with its type, mode, owner, and the hash of its content or its link."""
    identity = engine.call("create", image).stdout.strip()
    try:
        with subprocess.Popen(
            [engine.client, "export", identity],
            env={**engine.variables, "DOCKER_HOST": engine.host},
            stdout=subprocess.PIPE,
        ) as exporting:
            assert exporting.stdout is not None
            with tarfile.open(fileobj=exporting.stdout, mode="r|") as archive:
                found = {member.name: _described(archive, member) for member in archive}
        assert exporting.returncode == 0
    finally:
        engine.call("rm", "--force", identity)
    return {path: what for path, what in found.items() if not _EXCUSED.fullmatch(path)}


def _described(archive: tarfile.TarFile, member: tarfile.TarInfo) -> tuple[str, ...]:
    stream = archive.extractfile(member) if member.isreg() else None
    content = hashlib.file_digest(stream, "sha256").hexdigest() if stream else member.linkname
    kind = "link" if member.islnk() else str(member.type)
    return kind, oct(member.mode), f"{member.uid}:{member.gid}", content


def differences(
    one: Mapping[str, tuple[str, ...]], other: Mapping[str, tuple[str, ...]]
) -> list[str]:
    """The paths that only one of them has, or that are not the same in both."""
    return sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))


def main(images: list[str]) -> int:
    engine = find_engine(os.environ)
    one, other = (contents(engine, image) for image in images)
    found = differences(one, other)
    print(*found, f"{len(found)} of {len(one)} paths differ", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
