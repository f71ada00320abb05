"""The image for reviews: what it lacks, what it does all the same, and how it says no."""

from __future__ import annotations

import gzip
import json
import tarfile
from pathlib import Path

import pytest

from tests.container.engine import Engine
from tests.container.merged import a_pull_request, review
from tests.container.runner import Action
from tests.container.test_signals import DISPATCH
from tests.github_standin import events
from tests.projects import Shop
from tests.projects.duck import write_duck_shop

SHELL = ("--entrypoint", "/bin/sh")
# As gzip packs them. The zstd of a release takes about 0.86 of it, so 480 MB are kept there.
MOST_BYTES = {"review": 160_000_000, "full": 490_000_000}


def shell(engine: Engine, image: str, script: str) -> str:
    return engine.run(image, "-euc", script, options=SHELL).stdout


def test_content__has_no_java_no_jar_and_what_it_needs(engine: Engine, review_image: str) -> None:
    found = shell(
        engine,
        review_image,
        "command -v java || true; find / -xdev -name '*.jar' -o -name '*.jsa' | head",
    )
    assert found == ""
    # Nor Perl, and dpkg says so to whoever looks for holes in it.
    assert shell(engine, review_image, "dpkg-query -W -f '${Package}\\n' | grep perl || true") == ""
    script = "import pyspark.sql, sqlmesh.core.context, duckdb, psycopg2, pymysql; print('all')"
    python = ("--entrypoint", "/opt/ci-bot/bin/python")
    assert engine.run(review_image, "-I", "-c", script, options=python).stdout == "all\n"
    container = shell(engine, review_image, "cat /opt/ci-bot/ci-bot-container.json")
    assert container == '{"uid": 10001, "gid": 10001, "java_home": null}\n'


@pytest.mark.parametrize(
    "mode",
    [
        "apply",
        "sweep",
        pytest.param("estimate", marks=pytest.mark.night),
        pytest.param("cleanup", marks=pytest.mark.night),
    ],
)
def test_what_needs_spark__is_refused_before_anything_is_done(
    review_action: Action, mode: str
) -> None:
    # Nobody answers at GitHub's address: whoever asked would wait.
    outcome = review_action.run(
        "workflow_dispatch",
        DISPATCH,
        {"mode": mode, "pr-number": "7", "github-token": ""},
        {"GITHUB_API_URL": "http://127.0.0.1:9"},
    )
    assert outcome.exit_code == 2, outcome.log
    assert outcome.outputs["reason-code"] == "no_spark"
    assert "needs Spark, and the image for reviews has none." in outcome.log
    assert "without `/review`" in outcome.log


def shop(action: Action) -> Shop:
    return write_duck_shop(action.home / "made")


def test_review__is_done_as_in_the_other_image(review_action: Action) -> None:
    outcome = review(review_action, a_pull_request(review_action, shop(review_action))[1])
    report = json.loads((review_action.workspace / "ci-bot-report" / "report.json").read_text())
    assert report["failure"] is None, outcome.log
    assert report["checks"]["tests"]["run"] > 0
    assert [change["model"] for change in report["changes"] if change["change"] == "direct"] == [
        "shop.revenue"
    ]


def test_review__whose_unit_tests_run_on_spark__says_so_with_the_way_out(
    review_action: Action,
) -> None:
    made = shop(review_action)
    made.edit(
        "config.yaml",
        "\ndefault_gateway:",
        "\n    test_connection: {type: spark}\n\ndefault_gateway:",
    )
    outcome = review(review_action, a_pull_request(review_action, made)[1])
    assert outcome.exit_code == 2, outcome.log
    assert outcome.outputs["reason-code"] == "no_spark"
    assert "This needs Spark, and the PySpark here has none of its jars" in outcome.log
    assert "without `/review`" in outcome.log


@pytest.mark.parametrize(("mode", "event"), [("auto", "labeled")])
def test_event__that_needs_nothing__ends_well(review_action: Action, mode: str, event: str) -> None:
    outcome = review_action.run("pull_request", events.pull_request(event), {"mode": mode})
    assert outcome.exit_code == 0, outcome.log


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize("name", MOST_BYTES)
def test_download__is_at_most(
    engine: Engine, image: str, review_image: str, tmp_path: Path, name: str
) -> None:
    """What a pull transfers: each layer is packed by itself."""
    saved = tmp_path / "image.tar"
    engine.call(
        "save", "--output", str(saved), {"full": image, "review": review_image}[name], timeout=600
    )
    total = 0
    with tarfile.open(saved) as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.size > 100_000 else None
            if stream is not None:
                packed = tmp_path / "layer.gz"
                with stream, gzip.open(packed, "wb", compresslevel=6) as out:
                    while block := stream.read(1 << 20):
                        out.write(block)
                total += packed.stat().st_size
    assert 100_000_000 < total <= MOST_BYTES[name]
