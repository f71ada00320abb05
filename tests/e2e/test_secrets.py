"""A project that prints what it was given: nothing of it leaves the bot, through no door."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.e2e.job import Job, Outcome, Runner
from tests.e2e.scene import Change, Scene, add_orders
from tests.github_standin import events
from tests.github_standin.scripted import ScriptedServer
from tests.projects import Shop

STATE = "SQLMESH__GATEWAYS__LAKE__STATE_CONNECTION"
KEY_ID = "0123456789abcdef0123456789abcdef01234567"
VARIABLES = {
    "SQLMESH__GATEWAYS__LAKE__CONNECTION__TYPE": "duckdb",
    # SQLMesh's documented way of giving a password.
    f"{STATE}__TYPE": "postgres",
    f"{STATE}__HOST": "state.internal.acme",
    f"{STATE}__PORT": "5432",
    f"{STATE}__DATABASE": "state",
    f"{STATE}__USER": "state_reader_rw",
    f"{STATE}__PASSWORD": "Kettle-Lantern-44",
    # These pass by themselves, too.
    "SPARK_LAKE_KEY": "AbCdEf1234Xy",
    "SPARK_LAKE_OPTIONS": "-Dspark.hadoop.fs.s3a.secret.key=Qz7/vL0pXk2 -Dspark.app.name=shop",
    # And these because the workflow names them.
    "LAKE_AWS_KEY": "/Zt7abcdefghijklmnopqrstuvwxyzABCDEFG123",
    "LAKE_PIN": "4821975530",
    "LAKE_URL": "postgresql://bot:p%40ss-w0rd9@db.internal/lake",
    "LAKE_ACCOUNT": json.dumps({"type": "service_account", "private_key_id": KEY_ID}),
}
WORKER_ENV = {"worker-env": "LAKE_*"}
HIDDEN = [
    *(VARIABLES[f"{STATE}__{name}"] for name in ("HOST", "USER", "PASSWORD")),
    *(VARIABLES[name] for name in ("SPARK_LAKE_KEY", "LAKE_AWS_KEY", "LAKE_PIN")),
    *("Qz7/vL0pXk2", "p%40ss-w0rd9", "p@ss-w0rd9", KEY_ID),
]
# What a program makes of such values before it prints them.
TELL = """
import base64, json, os, urllib.parse

def tell():
    url = os.environ["LAKE_URL"].split(":")[2].split("@")[0]
    option = os.environ["SPARK_LAKE_OPTIONS"].split()[0].split("=")[1]
    account = json.loads(os.environ["LAKE_ACCOUNT"])["private_key_id"]
    given = [os.environ[name] for name in os.environ if name.startswith(("LAKE_", "SPARK_LAKE"))]
    given += [os.environ[name] for name in os.environ if name.startswith("SQLMESH__GATEWAYS")]
    parts = [*given, url, urllib.parse.unquote(url), option, account]
    shown = []
    for part in parts:
        shown += [part, part.lower(), part.upper(), json.dumps(part), urllib.parse.quote(part)]
        shown += [base64.b64encode(f"bot:{part}".encode()).decode(), part.encode().hex()]
    return "cannot connect with " + " and ".join(shown)
"""
# A Python model must have all it needs in its own module.
MODEL = f"""
import os
import typing as t
import pandas as pd
from sqlmesh import ExecutionContext, model
{TELL}
@model(
    "shop.lake_" + os.environ["SPARK_LAKE_KEY"],
    kind="FULL",
    columns={{"customer_id": "int"}},
    grain="customer_id",
)
def execute(context: ExecutionContext, start, end, execution_time, **kwargs: t.Any) -> pd.DataFrame:
    print(tell())
    raise ValueError(tell())
"""


def forms(secret: str) -> Iterator[str]:
    """What must not be found: the forms of `TELL`, made here."""
    yield from (secret, secret.lower(), secret.upper(), json.dumps(secret)[1:-1], quote(secret))
    yield secret.encode().hex()
    # The characters that do not depend on what stands before or behind.
    yield base64.b64encode(f"bot:{secret}".encode()).decode().rstrip("=")[6:-2]


def assert_hidden(text: str) -> None:
    found = [form for secret in HIDDEN for form in forms(secret) if form in text]
    assert found == []


def everything(outcome: Outcome, change: Change | None = None) -> str:
    """What anybody can read after a run: log, summary, outputs, files, and all comments."""
    comments = [str(comment["body"]) for comment in change.comments()] if change else []
    return "\n".join([outcome.readable, *comments])


def leak_on_load(shop: Shop) -> None:
    shop.write("models/lake.py", f"{TELL}\nraise ValueError(tell())\n")


def leak_in_a_name_and_on_execution(shop: Shop) -> None:
    shop.write("models/lake.py", MODEL)


def leak_in_the_configuration(shop: Shop) -> None:
    shop.edit(
        "config.yaml",
        "default_gateway: spark",
        "default_gateway: \"{{ env_var('SPARK_LAKE_KEY') }} {{ env_var('LAKE_PIN') }}\"",
    )


def test_review__that_fails_shows_nothing_of_it(scene: Scene) -> None:
    change = scene.open("leak", leak_on_load)

    outcome = change.review("opened", inputs=WORKER_ENV, variables=VARIABLES)

    assert outcome.exit_code == 1
    assert outcome.outputs["decision"] == "no_go"
    shown = everything(outcome, change)
    assert "cannot connect with" in change.sticky()
    assert "cannot connect with ***" in outcome.document("report")["failure"]["message"]
    assert "cannot connect with ***" in outcome.stdout
    assert "cannot connect with" in outcome.summary
    assert_hidden(shown)
    # What helps and is no secret stays.
    assert f"{VARIABLES[f'{STATE}__PORT']}" in shown


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.slow
def test_apply__of_a_model_with_a_secret_in_its_name_and_its_failure(scene: Scene) -> None:
    """SQLMesh writes names in small letters. The plan's identity is made of the true names."""
    change = scene.open("leak", leak_in_a_name_and_on_execution)
    given = {"inputs": WORKER_ENV, "variables": VARIABLES}

    reviewed = change.review("opened", **given)

    assert reviewed.outputs["plan-id"], reviewed.stdout
    assert_hidden(everything(reviewed, change))
    assert "shop.lake_***" in change.sticky()
    report = reviewed.document("report")
    assert "lake_***" in json.dumps(report["identity"])

    applied = change.dispatch(
        {"plan-id": reviewed.outputs["plan-id"], **WORKER_ENV}, variables=VARIABLES
    )

    assert applied.outputs["reason-code"] == "failed", applied.stdout
    assert applied.outputs["plan-id"] == reviewed.outputs["plan-id"]
    assert "***" in applied.document("apply")["failure"]["message"]
    assert "cannot connect with ***" in applied.stdout
    assert_hidden(everything(applied, change))

    cleaned = change.dispatch({"mode": "cleanup", **WORKER_ENV}, variables=VARIABLES)

    assert cleaned.outputs["reason-code"] == "removed", cleaned.stdout
    assert_hidden(everything(cleaned, change))


@pytest.mark.night
def test_cleanup_and_sweep__with_a_broken_configuration(scene: Scene) -> None:
    change = scene.open("harmless", add_orders)
    scene.commit("main", leak_in_the_configuration)
    scene.push("main")

    cleaned = change.dispatch(
        {"mode": "cleanup", **WORKER_ENV},
        variables=VARIABLES,
        workspace=scene.checkout(scene.main_sha),
    )

    assert cleaned.exit_code == 2, cleaned.stdout
    assert "***" in cleaned.document("cleanup")["failure"]["message"]
    assert_hidden(everything(cleaned, change))

    swept = scene.run(
        Job(
            "schedule",
            events.schedule(repo=scene.repo.full_name),
            inputs=WORKER_ENV,
            variables=VARIABLES,
        )
    )

    assert swept.exit_code == 2, swept.stdout
    assert any("***" in error for error in swept.errors)
    assert_hidden(everything(swept))


@pytest.mark.parametrize("form", ["terminal", "markdown", "json"])
@pytest.mark.by_day(1)
def test_laptop__shows_nothing_either(form: str, shop: Shop, tmp_path: Path) -> None:
    """The project sees the user's whole environment there."""
    leak_on_load(shop)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "ci_bot", "review", "--project", str(shop.project)),
            *("--format", form, "--output", str(tmp_path / "out"), "--worker-env", "LAKE_*"),
        ],
        env={**os.environ, **VARIABLES},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 1
    written = [path.read_text("utf-8") for path in (tmp_path / "out").iterdir()]
    assert len(written) == 4, "report.json, report.md, report.html and report.sarif"
    assert "cannot connect with" in done.stdout
    assert_hidden("\n".join([done.stdout, done.stderr, *written]))


def test_bad_input__repeats_no_secret(scripted_github: ScriptedServer, tmp_path: Path) -> None:
    """A secret that landed in another input, and is repeated in the message about it."""
    runner = Runner(
        api_url=scripted_github.url, repository="acme/warehouse", token="t" * 40, home=tmp_path
    )
    job = Job(
        "pull_request",
        events.pull_request("opened"),
        inputs={"plan-id": VARIABLES["LAKE_PIN"], "start": HIDDEN[2], **WORKER_ENV},
        variables={**VARIABLES, "CI_BOT_TIMEOUT_MINUTES": VARIABLES["SPARK_LAKE_KEY"]},
    )
    (tmp_path / "workspace").mkdir()

    outcome = runner.run(job, tmp_path / "workspace")

    assert outcome.exit_code == 2
    assert "timeout-minutes" in outcome.errors[0]
    assert_hidden(outcome.readable)


def test_crash__shows_no_secret(tmp_path: Path) -> None:
    """An activity reads a directory as a file, which no command foresees. The path is repeated."""
    target = tmp_path / VARIABLES["SPARK_LAKE_KEY"]
    target.mkdir()
    activity = "lambda machine: len(open(sys.argv[1]).read())"
    done = subprocess.run(
        [
            *(sys.executable, "-c"),
            f"import sys; from ci_bot.bot.cli.command_line import run_command_guarded; run_command_guarded({activity})",
            str(target),
        ],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(__file__).parents[2]),
            **VARIABLES,
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert "IsADirectoryError" in done.stderr
    assert "***" in done.stderr
    assert_hidden(done.stdout + done.stderr)
