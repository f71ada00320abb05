"""The pull requests that the goldens are about, as commits of a repository on disk.

The project is the one of `examples/flights`. Authors and dates are always the same, so a commit's
id changes only where a file does.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ci_bot.bot.cli.demo_story import CHANGE_FILES, PROJECT_FILES, list_files_of_demo_change
from ci_bot.bot.worker_client.review_subject import RequestedReviewCommits

NUMBER = 7
ENVIRONMENT = f"pr_{NUMBER}"
WIDE_MODELS = 80

# None removes a file.
Files = Mapping[str, str | None]

_BRANCH = "feature"
_IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "2014-01-01T08:00:00Z",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_COMMITTER_DATE": "2014-01-01T08:00:00Z",
    # Nothing of the machine's own settings reaches a commit.
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


class Repository:
    """A checkout whose HEAD is the test merge commit of the pull request that was opened last."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")
        # What SQLMesh and Python leave in a project that is worked on.
        (root / ".git" / "info" / "exclude").write_text(".cache/\n__pycache__/\nlogs/\n")

    def commit(self, files: Files, message: str) -> None:
        """Commits to main."""
        if self.git("branch", "--list", "main"):
            self.git("checkout", "--quiet", "main")
        self._write(files, message)

    def push(self, files: Files) -> RequestedReviewCommits:
        """The pull request gets these files, and starts at what main is now."""
        self.git("checkout", "--quiet", "-B", _BRANCH, "main")
        self._write(files, "Change the models")
        return self.merged()

    def merged(self) -> RequestedReviewCommits:
        """The pull request, merged into what main is now; that is checked out."""
        self.git("checkout", "--quiet", "--detach", "main")
        self.git("merge", "--quiet", "--no-ff", "--message", f"Merge #{NUMBER}", _BRANCH)
        head, base, merge = (self.git("rev-parse", name) for name in (_BRANCH, "main", "HEAD"))
        return RequestedReviewCommits(head=head, base=base, merge=merge)

    def _write(self, files: Files, message: str) -> None:
        for name, text in files.items():
            path = self.root / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def git(self, *arguments: str) -> str:
        """Runs git in the repository; returns what it printed."""
        done = subprocess.run(
            ["git", *arguments],  # noqa: S607 - the machine's git
            cwd=self.root,
            env={**os.environ, **_IDENTITY},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()


def project_files() -> dict[str, str]:
    """The flights project as it is on the main branch."""
    return {
        path.relative_to(PROJECT_FILES).as_posix(): path.read_text("utf-8")
        for path in sorted(PROJECT_FILES.rglob("*"))
        if path.is_file() and not {"__pycache__", ".cache", "logs"} & set(path.parts)
    }


@dataclass(frozen=True)
class Change:
    """The files of a pull request, and of the base branch that it is for."""

    head: Files
    base: Files = field(default_factory=project_files)


def edited(path: str, *replacements: tuple[str, str]) -> dict[str, str]:
    """One file of the flights project with text replaced. Raises where the text is not there."""
    text = (PROJECT_FILES / path).read_text("utf-8")
    for before, after in replacements:
        if before not in text:
            raise ValueError(f"{before!r} is not in {path}")
        text = text.replace(before, after)
    return {path: text}


def small_change() -> Change:
    """What the demo's pull request changes."""
    return Change(
        {path: (CHANGE_FILES / path).read_text("utf-8") for path in list_files_of_demo_change()}
    )


def on_another_base() -> Files:
    """What main gets meanwhile: it changes what the small change's models read."""
    return edited(
        "models/staging/flights.sql",
        (
            "CAST(f.distance AS INT) AS distance_miles",
            "CAST(f.distance AS INT) AS distance_miles /* miles */",
        ),
        ("f.dep_time IS NULL", "f.dep_time IS NULL AND f.arr_time IS NULL"),
    )


def destructive_change() -> Change:
    """A column goes that a view reads, and a model of its own; somebody gets rights on a schema."""
    head: dict[str, str | None] = {
        **edited(
            "models/marts/route_summary.sql",
            ("    scheduled_flights = 'Flights in the schedule',\n", ""),
            ("  CAST(COUNT(*) AS BIGINT) AS scheduled_flights,\n", ""),
            ("(origin, destination, scheduled_flights)", "(origin, destination)"),
        ),
        **edited(
            "config.yaml",
            (
                "format:\n",
                "after_all:\n  - GRANT SELECT ON SCHEMA marts TO ROLE board\n\nformat:\n",
            ),
        ),
        "models/marts/carrier_scorecard.sql": None,
    }
    return Change(head)


# A reader of daily totals that keeps its history whatever changes.
LATE_DAYS = """\
MODEL (
  name marts.late_days,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column flight_date,
    forward_only TRUE
  ),
  owner 'operations',
  grain (flight_date, carrier),
  audits (
    NOT_NULL(columns := (flight_date, carrier)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (flight_date, carrier))
  )
);

SELECT
  d.carrier,
  d.late_arrivals,
  d.flight_date
FROM marts.daily_carrier_performance AS d
WHERE
  d.flight_date BETWEEN @start_date AND @end_date
"""


def with_late_days() -> dict[str, str]:
    """The main branch with the forward-only reader."""
    return {**project_files(), "models/marts/late_days.sql": LATE_DAYS}


def forward_only_reader() -> Change:
    """A column is computed differently, and one of its two readers keeps the old numbers."""
    return Change(
        edited(
            "models/marts/daily_carrier_performance.sql",
            ("f.arrival_delay_minutes > 15", "f.arrival_delay_minutes >= 15"),
        ),
        with_late_days(),
    )


def leaked_key() -> dict[str, str]:
    """A payment provider's live key in the configuration; drawn by chance, so it opens nothing."""
    key = "".join(("sk_", "live_", "4eC39HqLyjWDarjtT1zdp7dcVtQ2mXbN"))
    return edited("config.yaml", ("format:\n", f"variables:\n  payments: {key}\n\nformat:\n"))


def leaked_key_and_dropped_column() -> Change:
    """The key, and a column goes that a view reads."""
    column = edited(
        "models/marts/route_summary.sql",
        ("    scheduled_flights = 'Flights in the schedule',\n", ""),
        ("  CAST(COUNT(*) AS BIGINT) AS scheduled_flights,\n", ""),
        ("(origin, destination, scheduled_flights)", "(origin, destination)"),
    )
    return Change({**leaked_key(), **column})


def refused_plan() -> Change:
    """The key, and a column of the forward-only model goes, which SQLMesh refuses to plan."""
    without = LATE_DAYS.replace("  d.late_arrivals,\n", "")
    return Change({**leaked_key(), "models/marts/late_days.sql": without}, with_late_days())


def failed_plan() -> Change:
    """A model that cannot be parsed."""
    return Change(edited("models/staging/flights.sql", ("FROM raw.flights AS f\n", "FROM\n")))


def base_broken() -> Change:
    """Main holds such a model, and the pull request changes another one."""
    broken = edited("models/marts/route_ranking.sql", ("FROM marts.route_summary AS r", "FROM"))
    return Change(
        edited("models/staging/weather.sql", ("<= 200", "<= 250")), {**project_files(), **broken}
    )


def no_changes() -> Change:
    """A unit test expects what it expected before, of one flight more."""
    flight = "- {origin: JFK, destination: SJU, distance_miles: 1598, arrival_delay_minutes: 5}"
    more = flight.replace("arrival_delay_minutes: 5", "arrival_delay_minutes: null")
    return Change(
        edited(
            "tests/test_routes.yaml",
            (flight, f"{flight}\n        {more}"),
            (
                "destination: SJU, destination_name: null, scheduled_flights: 1",
                "destination: SJU, destination_name: null, scheduled_flights: 2",
            ),
        )
    )


def failing_audit() -> Change:
    """A column more, and an audit that this data cannot pass."""
    listed = "NOT_NULL(columns := (origin, destination, scheduled_flights)),"
    delay = "CAST(AVG(f.arrival_delay_minutes) AS DOUBLE) AS mean_arrival_delay_minutes"
    longest = "CAST(MAX(f.arrival_delay_minutes) AS INT) AS longest_arrival_delay_minutes"
    test = edited(
        "tests/test_routes.yaml",
        (
            "mean_arrival_delay_minutes: -5.0}",
            "mean_arrival_delay_minutes: -5.0, longest_arrival_delay_minutes: 10}",
        ),
        (
            "mean_arrival_delay_minutes: 5.0}",
            "mean_arrival_delay_minutes: 5.0, longest_arrival_delay_minutes: 5}",
        ),
    )
    return Change(
        test
        | edited(
            "models/marts/route_summary.sql",
            (
                listed,
                f"{listed}\n    ACCEPTED_VALUES(column := origin, is_in := ('EWR', 'JFK')),",
            ),
            (delay, f"{delay},\n  {longest}"),
        )
    )


def wide_change() -> Change:
    """A project of four layers in which every model gets a column more."""
    base = {"config.yaml": (PROJECT_FILES / "config.yaml").read_text("utf-8")}
    base["external_models.yaml"] = (
        "- name: raw.events\n  columns:\n    id: int\n    amount: int\n    event_date: date\n"
    )
    numbers = range(WIDE_MODELS)
    wide = {_wide_path(number): _wide_model(number) for number in numbers}
    head = {
        path: text.replace("amount,\n", "amount,\n  CAST(id AS STRING) AS id_text,\n", 1)
        for path, text in wide.items()
    }
    return Change(head, base | wide)


def _wide_name(number: int) -> str:
    return f"layer_{number * 4 // WIDE_MODELS}.model_{number:03}"


def _wide_path(number: int) -> str:
    return f"models/{_wide_name(number).replace('.', '/')}.sql"


def _wide_model(number: int) -> str:
    layer = WIDE_MODELS // 4
    source = _wide_name(number - layer) if number >= layer else "raw.events"
    return f"""\
MODEL (
  name {_wide_name(number)},
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column event_date,
    batch_size {7 + number}
  ),
  owner 'wide',
  grain id,
  audits (
    NOT_NULL(columns := (
      id
    ))
  )
);

SELECT
  CAST(id AS INT) AS id,
  CAST(amount + {number} AS INT) AS amount,
  CAST(event_date AS DATE) AS event_date
FROM {source}
WHERE
  event_date BETWEEN @start_date AND @end_date
"""
