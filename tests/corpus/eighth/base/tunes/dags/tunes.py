"""Runs what is due, each hour."""

from datetime import datetime, timedelta

from airflow import DAG
from airflow.operators.bash import BashOperator

with DAG(
    dag_id="tunes",
    schedule="@hourly",
    start_date=datetime(2024, 1, 1),
    catchup=False,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
) as dag:
    run = BashOperator(task_id="run", bash_command="cd /app && sqlmesh run prod")
    audit = BashOperator(task_id="audit", bash_command="cd /app && sqlmesh audit --start yesterday")
    run >> audit
