"""From `docker pull` on a machine that has nothing to a posted review: image by image.

    .venv/bin/python -m tests.benchmarks.bench_pull IMAGE... [--runs N]

The images are in the engine of DOCKER_HOST; the first is what the others are compared with. Each is
pushed to a registry on loopback, which has no network's speed. Each run has an engine of its own with
an empty store (root, Debian's `docker-registry`; without it `apt-get download` brings one), pulls, and
reviews a pull request against the GitHub stand-in, with the base branch as baseline. The images take
turns; the table has the medians of wall seconds.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.benchmarks.taking import say
from tests.container.engine import Engine, find_engine
from tests.container.test_life import ImageRunner
from tests.e2e.scene import Scene, add_orders
from tests.github_standin.parts import default_root, locate
from tests.github_standin.standin import GitHubStandin
from tests.projects import write_shop
from tests.servers import free_port

START_SECONDS = 60
REGISTRY = """\
version: 0.1
storage: {{filesystem: {{rootdirectory: {root}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


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


def main(images: Sequence[str], runs: int) -> None:
    holder = find_engine(os.environ)
    given = os.environ.get("CI_BOT_TEST_PARTS")
    parts = locate(Path(given) if given else default_root(Path.home()))
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
            name = f"{address}/image-{number}:pulled"
            holder.call("tag", one.image, name)
            try:
                holder.call("push", "--quiet", name, timeout=900)
            finally:
                holder.call("rmi", name)
            one.size = compressed(address, f"image-{number}")
        for run in range(runs):
            for number, one in enumerate(found):
                place = home / f"run-{run}-{number}"
                place.mkdir()
                with empty_engine(holder, place / "engine") as (engine, process):
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


def compressed(address: str, name: str) -> int:
    """Bytes of an image's layers as they are pulled."""
    request = urllib.request.Request(
        f"http://{address}/v2/{name}/manifests/pulled",
        headers={"Accept": "application/vnd.docker.distribution.manifest.v2+json"},
    )
    with urllib.request.urlopen(request) as answer:
        return sum(layer["size"] for layer in json.load(answer)["layers"])


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
        until(lambda: answers(f"http://127.0.0.1:{port}/v2/"), "the registry")
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


@contextmanager
def empty_engine(holder: Engine, home: Path) -> Iterator[tuple[Engine, int]]:
    """A container engine that has never seen an image, as .ci/engine.sh starts one; and its pid."""
    home.mkdir()
    host = f"unix://{home}/docker.sock"
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                "/usr/sbin/dockerd", "--data-root", home / "data", "--exec-root", home / "exec",
                "--pidfile", home / "docker.pid", "--host", host, "--storage-driver", "overlay2",
                "--bridge=none", "--iptables=false", "--ip6tables=false",
            ],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    engine = Engine(holder.client, host, holder.variables)
    try:
        until(lambda: engine.call("version", check=False).returncode == 0, "the container engine")
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


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url):
            return True
    except OSError:
        return False


def until(true: Callable[[], bool], what: str) -> None:
    """Waits.

    Raises:
        RuntimeError: it takes longer than START_SECONDS.
    """
    deadline = time.monotonic() + START_SECONDS
    while not true():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} does not start")
        time.sleep(0.1)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("images", nargs="+")
    arguments.add_argument("--runs", type=int, default=3)
    chosen = arguments.parse_args()
    main(chosen.images, chosen.runs)
