"""From `docker pull` on a machine that has nothing to a posted review: image by image.

    .venv/bin/python -m tests.benchmarks.bench_pull IMAGE... [--runs N]
        [--dockerd PROGRAM] [--skopeo PROGRAM]

The images are in the engine of DOCKER_HOST; the first is what the others are compared with. Each is
pushed to a registry on loopback, which has no network's speed: with gzip, as Docker does, or as
`zstd:IMAGE` in the form in which a release publishes (skopeo; the engine must be Docker 23 or later).
Each run has an engine of its own with an empty store (root, Debian's `docker-registry`; without it
`apt-get download` brings one), pulls, and reviews a pull request against the GitHub stand-in, with the
base branch as baseline. The images take turns; the table has the medians of wall seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.benchmarks.timed_command import say
from tests.container.engine import Engine, find_engine
from tests.container.registry import registry
from tests.container.test_life import ImageRunner
from tests.e2e.scene import Scene, add_orders
from tests.github_standin.parts import locate
from tests.github_standin.standin import GitHubStandin
from tests.maven import parts_directory
from tests.projects import write_shop
from tests.servers import wait_until

ZSTD = "zstd:"
# As .github/workflows/release.yml has it.
ZSTD_LEVEL = 12
MANIFESTS = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
)


@dataclass
class Measured:
    """One image: compressed bytes, and the seconds of each run; `worked` are the processors' of a
    pull."""

    image: str
    size: int = 0
    pulls: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)
    reviews: list[float] = field(default_factory=list)

    @property
    def whole(self) -> float:
        return median(map(sum, zip(self.pulls, self.reviews, strict=True)))


@dataclass(frozen=True)
class Programs:
    """What an engine is, and what publishes with zstd."""

    dockerd: str
    skopeo: str


def main(images: Sequence[str], runs: int, programs: Programs) -> None:
    holder = find_engine(os.environ)
    parts = locate(parts_directory(os.environ))
    with (
        tempfile.TemporaryDirectory(prefix="ci-bot-pull-") as directory,
        registry(Path(directory)) as address,
        GitHubStandin(parts, Path(directory)) as standin,
    ):
        home = Path(directory)
        # The container's accounts have to pass.
        home.chmod(0o755)
        found = [Measured(image) for image in images]
        for number, one in enumerate(found):
            publish(holder, one.image, f"{address}/image-{number}:pulled", programs.skopeo)
            one.size = compressed(address, f"image-{number}")
        for run in range(runs):
            for number, one in enumerate(found):
                place = home / f"run-{run}-{number}"
                place.mkdir()
                with empty_engine(holder, place / "engine", programs.dockerd) as (engine, process):
                    name = f"{address}/image-{number}:pulled"
                    began, used = time.perf_counter(), processor_seconds(process)
                    engine.call("pull", "--quiet", name, timeout=900)
                    pulled = time.perf_counter() - began
                    worked = processor_seconds(process) - used
                    reviewed = review(engine, name, standin, place)
                one.pulls.append(pulled)
                one.worked.append(worked)
                one.reviews.append(reviewed)
                say(f"<!-- {one.image}: pulled in {pulled:.1f} s, reviewed in {reviewed:.1f} s -->")
                shutil.rmtree(place)
        say("| image | compressed | pull | its processor time | review | both | of the first |")
        say("|---|--:|--:|--:|--:|--:|--:|")
        for one in found:
            say(
                f"| {one.image} | {one.size / 1e6:.0f} MB | {median(one.pulls):.1f} s "
                f"| {median(one.worked):.1f} s | {median(one.reviews):.1f} s | {one.whole:.1f} s "
                f"| {one.whole / found[0].whole:.2f} |"
            )


def review(engine: Engine, image: str, standin: GitHubStandin, home: Path) -> float:
    """Seconds of a review that posts its comment, from `docker run` to its end."""
    scene = Scene(standin, write_shop(home / "shop"), home)
    scene.runner = ImageRunner(
        engine, image, scene.shop.root,
        api_url=standin.url, repository=scene.repo.full_name, token=scene.token, home=home,
    )  # fmt: skip
    change = scene.open("measured", add_orders)
    outcome = change.review("opened", keep=False, inputs={"baseline": "base-branch"})
    if outcome.exit_code or "shop.revenue" not in change.sticky():
        raise RuntimeError(f"no review: {outcome.stdout[-2000:]}\n{outcome.stderr[-2000:]}")
    return outcome.seconds


def publish(holder: Engine, image: str, name: str, skopeo: str) -> None:
    """Pushes an image under a name to a registry without TLS."""
    if image.startswith(ZSTD):
        subprocess.run(
            [
                skopeo, "copy", "--quiet", "--format", "oci", "--dest-tls-verify=false",
                "--dest-compress-format", "zstd", "--dest-compress-level", str(ZSTD_LEVEL),
                "--src-daemon-host", holder.host,
                f"docker-daemon:{with_tag(image.removeprefix(ZSTD))}", f"docker://{name}",
            ],
            check=True,
        )  # fmt: skip
        return
    holder.call("tag", image, name)
    try:
        holder.call("push", "--quiet", name, timeout=900)
    finally:
        holder.call("rmi", name)


def with_tag(image: str) -> str:
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"


def compressed(address: str, name: str) -> int:
    """Bytes of an image's layers as they are pulled."""
    request = urllib.request.Request(
        f"http://{address}/v2/{name}/manifests/pulled",
        headers={"Accept": ", ".join(MANIFESTS)},
    )
    with urllib.request.urlopen(request) as answer:
        return sum(layer["size"] for layer in json.load(answer)["layers"])


@contextmanager
def empty_engine(holder: Engine, home: Path, dockerd: str) -> Iterator[tuple[Engine, int]]:
    """A container engine that has never seen an image, as .ci/engine.sh starts one; and its pid."""
    home.mkdir()
    host = f"unix://{home}/docker.sock"
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                dockerd, "--data-root", home / "data", "--exec-root", home / "exec",
                "--pidfile", home / "docker.pid", "--host", host, "--storage-driver", "overlay2",
                "--bridge=none", "--iptables=false", "--ip6tables=false",
            ],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    engine = Engine(holder.client, host, holder.variables)
    try:
        wait_until(
            lambda: engine.call("version", check=False).returncode == 0, (process,), home / "log"
        )
        yield engine, process.pid
    finally:
        process.terminate()
        process.wait()
        # It leaves the network that containers without one of their own have.
        namespaces = (home / "exec" / "netns").glob("*")
        subprocess.run(["/usr/bin/umount", *namespaces], check=False, capture_output=True)


def processor_seconds(process: int) -> float:
    """What a process and those of its children that have ended took of the processors."""
    after_name = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    return sum(map(int, after_name[11:15])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("images", nargs="+")
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--dockerd", default="/usr/sbin/dockerd")
    arguments.add_argument("--skopeo", default="skopeo")
    chosen = arguments.parse_args()
    main(chosen.images, chosen.runs, Programs(chosen.dockerd, chosen.skopeo))
