"""Dagster: what is due each hour, and the janitor at night."""

import subprocess

from dagster import Definitions, ScheduleDefinition, job, op


@op
def run_prod():
    subprocess.run(["sqlmesh", "run", "prod"], cwd="/app", check=True)


@op
def clean():
    subprocess.run(["sqlmesh", "janitor"], cwd="/app", check=True)


@job
def hourly():
    run_prod()


@job
def nightly():
    clean()


defs = Definitions(
    jobs=[hourly, nightly],
    schedules=[
        ScheduleDefinition(job=hourly, cron_schedule="15 * * * *", execution_timezone="UTC"),
        ScheduleDefinition(job=nightly, cron_schedule="0 3 * * *", execution_timezone="UTC"),
    ],
)
