"""Files of a team that run SQLMesh: what each change of them means for prod."""

from __future__ import annotations

from time import process_time

import pytest

from ci_bot.worker.rules.files.run_commands import read_run_file
from tests.unit.rules.world import files, seen

RULE = "run-command-changed"
WORKFLOW = ".github/workflows/deploy.yml"
DEPLOY = """\
on:
  push:
    branches: [main]
jobs:
  deploy:
    environment: production
    steps:
      - run: pip install sqlmesh==0.236.4
      - run: sqlmesh test
      - run: |
          sqlmesh plan prod --auto-apply \\
            --no-prompts
"""


def subjects(path: str, before: str | None, after: str | None) -> list[str | None]:
    inputs = files({path: before}, {path: after})
    found = seen(inputs, RULE)
    assert {one.severity for one in found} <= {"high"}
    return [one.subject for one in found]


@pytest.mark.parametrize(
    "option",
    [
        "--empty-backfill",
        "--skip-backfill",
        "--skip-tests",
        "--no-gaps",
        "--forward-only",
        "--restate-model stg.plays",
        "--select-model 'mart.*'",
        "--ignore-cron",
        "--start 2026-01-01",
    ],
)
@pytest.mark.parametrize(
    ("path", "command"),
    [
        (WORKFLOW, "      - run: sqlmesh --gateway spark plan prod --auto-apply{}\n"),
        ("Makefile", "deploy:\n\tsqlmesh plan prod --auto-apply{}\n"),
        ("dags/a.py", "task = BashOperator(bash_command='cd /a && sqlmesh run prod{}')\n"),
        ("scripts/night.sh", "sqlmesh plan prod \\\n  --auto-apply \\\n {}\n"),
        ("Dockerfile", "ENTRYPOINT sqlmesh run prod{}\n"),
    ],
)
def test_option__that_comes_or_goes_is_found(path: str, command: str, option: str) -> None:
    with_it, without = command.format(f" {option}"), command.format("")
    assert subjects(path, without, with_it) == [option.split(maxsplit=1)[0]]
    assert subjects(path, with_it, without) == [option.split(maxsplit=1)[0]]


@pytest.mark.parametrize(
    ("before", "after", "subject"),
    [
        ('["sqlmesh", "plan", "prod"]', '["sqlmesh", "plan", "prod", "--skip-tests"]', None),
        (
            "command: [sqlmesh]\nargs: [plan, prod]",
            "command: [sqlmesh]\nargs: [plan, prod, --skip-tests]",
            None,
        ),
        ("sqlmesh plan prod", "sqlmesh plan prod -r stg.plays", "--restate-model"),
        (
            "from sqlmesh import Context\ncontext.plan('prod', skip_tests=False)",
            "from sqlmesh import Context\ncontext.plan('prod', skip_tests=True)",
            None,
        ),
    ],
)
def test_option__is_found_in_each_way_to_write_it(
    before: str, after: str, subject: str | None
) -> None:
    assert subjects("deploy/job.py", before, after) == [subject or "--skip-tests"]


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (WORKFLOW, "sqlmesh test", "sqlmesh test || true"),
        (WORKFLOW, "- run: sqlmesh test", "- continue-on-error: true\n  run: sqlmesh test"),
        ("Makefile", "test:\n\tsqlmesh test", "test:\n\t-sqlmesh test"),
        ("night.sh", "set -euo pipefail\nsqlmesh run", "set -u\nsqlmesh run"),
        ("night.sh", "set -e\nsqlmesh run", "set -e\nset +e\nsqlmesh run"),
        (
            "dags/a.py",
            "BashOperator(\n bash_command='sqlmesh audit')",
            "BashOperator(\n bash_command='sqlmesh audit', trigger_rule='all_done')",
        ),
    ],
)
def test_failure__that_no_longer_stops_is_found(path: str, before: str, after: str) -> None:
    assert len(subjects(path, before, after)) == 1
    assert subjects(path, after, before) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("dags/a.py", 'DAG(\n    schedule="{}",\n)\nbash_command="sqlmesh run prod"\n'),
        (WORKFLOW, "on:\n  schedule:\n    - cron: '{}'\njobs:\n  a:\n    run: sqlmesh run prod\n"),
    ],
)
def test_schedule__that_changes_is_found(path: str, text: str) -> None:
    before, after = text.format("0 * * * *"), text.format("0 0 * * 1")
    assert subjects(path, before, after) == ["schedule"]
    assert subjects("crontab", "0 * * * * sqlmesh run", "0 1 * * * sqlmesh run") == ["schedule"]


def test_guard__of_a_deployment_that_goes_is_found() -> None:
    assert subjects(WORKFLOW, DEPLOY, DEPLOY.replace("    environment: production\n", "")) == [
        "held"
    ]
    assert subjects(WORKFLOW, DEPLOY, DEPLOY.replace("[main]", "[develop]")) == ["held"]


def test_command__that_is_no_longer_run_is_found() -> None:
    assert subjects(WORKFLOW, DEPLOY, DEPLOY.replace("      - run: sqlmesh test\n", "")) == [
        "sqlmesh test"
    ]
    assert subjects(WORKFLOW, DEPLOY, None) == ["sqlmesh plan", "sqlmesh test"]
    assert subjects("a.sh", "sqlmesh plan prod", "sqlmesh plan staging") == ["sqlmesh plan"]


def test_command__that_moves_to_another_file_is_none() -> None:
    inputs = files(
        {WORKFLOW: DEPLOY, "deploy.sh": None},
        {
            WORKFLOW: DEPLOY.replace("      - run: sqlmesh test\n", "      - run: ./deploy.sh\n"),
            "deploy.sh": "sqlmesh test\n",
        },
    )
    assert seen(inputs, RULE) == []


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (WORKFLOW, DEPLOY, DEPLOY.replace("sqlmesh test", "sqlmesh test -v")),
        (WORKFLOW, DEPLOY, f"# deploys with --skip-tests in an emergency\n{DEPLOY}"),
        (WORKFLOW, DEPLOY, DEPLOY.replace("      - run: pip", "      - run: pip --no-cache-dir")),
        (WORKFLOW, DEPLOY, DEPLOY.replace("0.236.4", "0.236.5")),
        (WORKFLOW, None, DEPLOY),
        (
            "Makefile",
            "run:\n\tsqlmesh run prod\n",
            "run:\n\tsqlmesh run prod\nf:\n\tsqlmesh format\n",
        ),
        ("README.md", "`sqlmesh plan prod`", "`sqlmesh plan prod --skip-tests`"),
        ("dags/other.py", 'schedule="@hourly"', 'schedule="@daily"'),
        (WORKFLOW, "uses: acme/sqlmesh@v1", "uses: acme/sqlmesh@v2"),
        ("lib/a.py", "frame.plan(start=1)", "frame.plan(start=2)"),
    ],
)
def test_file__that_runs_the_same_is_none(path: str, before: str | None, after: str) -> None:
    assert subjects(path, before, after) == []


def test_new_file__with_an_option_that_harms_is_found() -> None:
    assert subjects("a.sh", None, "sqlmesh plan prod --auto-apply --skip-tests") == ["--skip-tests"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("ci-bot-report/report.html", "<p>sqlmesh plan pr_7 --restate-model a</p>"),
        (
            "ci-bot-report/report.json",
            '{\n "schema_version": 1,\n "activity": "review",\n "line": '
            '"sqlmesh plan pr_7 --restate-model a"}',
        ),
    ],
)
def test_report__that_lies_in_the_checkout__runs_nothing(path: str, text: str) -> None:
    assert subjects(path, None, text) == []


def test_json__that_runs_a_command__does() -> None:
    task = '{"command": ["sqlmesh", "plan", "prod", "--empty-backfill"]}'

    assert subjects("deploy/task.json", None, task) == ["--empty-backfill"]


PADDED = {
    "empty lines": "sqlmesh plan\n" + "\n" * 400_000,
    "lines of blanks": "sqlmesh plan\n" + " \n" * 200_000,
    "one line of names": "sqlmesh " * 50_000,
    "names and options": "sqlmesh -a " * 40_000,
    "a schedule of blanks": "sqlmesh plan\ncron: a" + " " * 400_000 + "b",
    "lists": "sqlmesh plan\n" + "- " * 200_000,
}


@pytest.mark.parametrize("text", PADDED.values(), ids=PADDED)
def test_file__that_is_padded__is_read_in_a_moment(text: str) -> None:
    """Where the time grew with the square of the length, 60 kB did not end in five minutes."""
    begun = process_time()

    read_run_file(text)

    assert process_time() - begun < 20


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("rm -rf .cache state", True),
        ("rm -f /srv/sqlmesh/state.db", True),
        ("rm -rf spark-warehouse metastore_db", True),
        ("cd /srv && rm data/prod.duckdb; ls", True),
        ("rm -rf .cache logs target", False),
        ("rm -rf state_of_play.txt dist", False),
        ("rm /tmp/report.csv", False),
        ("echo 'the state is kept'", False),
    ],
)
def test_deletion__of_a_state_beside_commands(line: str, is_found: bool) -> None:
    script = "#!/bin/sh\nset -e\n{}sqlmesh run\n"
    found = subjects("ops/night.sh", script.format(""), script.format(f"{line}\n"))

    assert bool(found) == is_found
    assert subjects("ops/night.sh", script.format(f"{line}\n"), script.format(f"{line}\n")) == []
    assert subjects("ops/clean.sh", None, f"#!/bin/sh\n{line}\n") == []
