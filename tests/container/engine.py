"""A container engine: find one, build the image with it, run containers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

# The name that .ci/engine.sh gives to the base image it makes on machines without a registry.
LOCAL_BASE = os.environ.get("CI_BOT_LOCAL_BASE", "ci-bot-base:bookworm")
USUAL_SOCKET = "unix:///var/run/docker.sock"
# The Dockerfile hands build secrets in, which only BuildKit can. From this version on the docker
# client leaves BuildKit to a plug-in, which Debian's client does not need.
FIRST_WITH_PLUGIN = 23


class EngineMissingError(Exception):
    """No engine that can build and run the image; the message says what to do."""


@dataclass(frozen=True)
class Engine:
    """A docker client that can build, and the engine it talks to."""

    client: str
    host: str
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)

    def call(
        self, *arguments: str, check: bool = True, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """One docker command. `check`: a failure is an AssertionError that shows its output."""
        done = subprocess.run(
            [self.client, *arguments],
            env={**self.variables, "DOCKER_HOST": self.host, "DOCKER_BUILDKIT": "1"},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode:
            output = (done.stdout + done.stderr)[-6000:]
            raise AssertionError(f"docker {arguments[0]} ended with {done.returncode}:\n{output}")
        return done

    def has_image(self, name: str) -> bool:
        """Whether the engine holds this image already."""
        return self.call("image", "inspect", name, check=False).returncode == 0

    def build(self, context: Path, tag: str, secrets: Mapping[str, Path], *options: str) -> None:
        """Build the image of `context`, on the local base if there is one."""
        base = ["--build-arg", f"BASE_IMAGE={LOCAL_BASE}"] if self.has_image(LOCAL_BASE) else []
        handed_in = [f"--secret=id={name},src={path}" for name, path in secrets.items()]
        # Host networking: an engine started by .ci/engine.sh has no bridge.
        self.call(
            "build", "--network", "host", *base, *handed_in, *options, "--tag", tag, str(context),
            timeout=1800,
        )  # fmt: skip

    def run(
        self,
        image: str,
        *command: str,
        options: Sequence[str] = (),
        network: str = "host",
        check: bool = True,
        timeout: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        """Run a container to its end; it is removed afterwards."""
        return self.call(
            "run", "--rm", "--network", network, *options, image, *command,
            check=check, timeout=timeout,
        )  # fmt: skip

    @contextmanager
    def started(
        self, image: str, *command: str, options: Sequence[str] = (), network: str = "host"
    ) -> Iterator[str]:
        """A container in the background; its id. Killed and removed at the end of the block."""
        identity = self.call(
            "run", "--detach", "--network", network, *options, image, *command
        ).stdout.strip()
        try:
            yield identity
        finally:
            self.call("rm", "--force", identity, check=False)


def find_engine(variables: Mapping[str, str]) -> Engine:
    """The engine that DOCKER_HOST names, else the usual one.

    Raises:
        EngineMissingError: None answers, or no client can build with BuildKit.
    """
    host = variables.get("DOCKER_HOST") or USUAL_SOCKET
    clients = [shutil.which("docker", path=variables.get("PATH")), "/usr/bin/docker"]
    found = [client for client in dict.fromkeys(clients) if client and Path(client).is_file()]
    if not found:
        raise EngineMissingError("there is no docker client; `.ci/engine.sh start` brings one")
    for client in found:
        engine = Engine(client, host, dict(variables))
        version = engine.call("version", "--format", "{{.Client.Version}}", check=False)
        if version.returncode:
            raise EngineMissingError(
                f"no container engine answers at {host}; "
                "`export DOCKER_HOST=$(.ci/engine.sh start)` starts one"
            )
        built_in = int(version.stdout.split(".")[0]) < FIRST_WITH_PLUGIN
        if built_in or engine.call("buildx", "version", check=False).returncode == 0:
            return engine
    raise EngineMissingError(f"none of {', '.join(found)} can build with BuildKit")


def build_secrets(variables: Mapping[str, str], scratch: Path) -> dict[str, Path]:
    """What pip needs on this machine: its certificate authorities and its index settings.

    Taken from the variables and the file that pip itself reads; empty on a machine that needs
    neither. Both reach the build as secrets, so no layer keeps them.
    """
    secrets = {}
    for name in ("PIP_CERT", "SSL_CERT_FILE"):
        if variables.get(name) and Path(variables[name]).is_file():
            secrets["ca"] = Path(variables[name])
            break
    settings = [
        f"{name} = {variables[variable]}"
        for name, variable in (
            ("index-url", "PIP_INDEX_URL"),
            ("extra-index-url", "PIP_EXTRA_INDEX_URL"),
            ("trusted-host", "PIP_TRUSTED_HOST"),
        )
        if variables.get(variable)
    ]
    configuration = Path(variables.get("PIP_CONFIG_FILE") or "/etc/pip.conf")
    if settings:
        written = scratch / "pip.conf"
        written.write_text("\n".join(["[global]", *settings, ""]), "utf-8")
        secrets["pip_conf"] = written
    elif configuration.is_file():
        secrets["pip_conf"] = configuration
    return secrets
