"""What a repository's workflows need GitHub to let in: a rule that keeps them out leaves no trace.

Workflow execution protections are lists of the events and of the actors that may start a workflow:
https://docs.github.com/en/repositories/managing-your-repositorys-settings-and-features/actions-policies/workflow-execution-protections
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ci_bot.contracts.documents.plan import ProjectCheck
from ci_bot.worker.words.yaml_data import load

_FOLDER = Path(".github") / "workflows"
# This action, or its directory for reviews, by whoever publishes it.
_USES = re.compile(r"[\w.-]+/sqlmesh-plan-review(?:/review)?@")
_LARGEST = 1_000_000
# `/sqlmesh` in a comment starts another workflow, by the token of the job that reads the comment.
_STARTED_BY_A_JOB = "workflow_dispatch"


def check(repository: Path) -> ProjectCheck | None:
    """The events that start this action here; None where no workflow uses it."""
    used = [workflow for workflow in _workflows(repository) if _uses_this_action(workflow)]
    events = sorted({event for workflow in used for event in _events(workflow)})
    if not events:
        return None
    message = f"this action is started by {', '.join(events)}"
    fix = (
        "Nothing to do, unless the repository or its organization has workflow execution "
        "protections: their rules have to let these events in"
    )
    if _STARTED_BY_A_JOB in events:
        fix += ", and `github-actions[bot]`, which starts what a comment asks for"
    return ProjectCheck(name="workflows", status="ok", message=message, fix=f"{fix}.")


def _workflows(repository: Path) -> Iterator[Mapping[str, Any]]:
    """The workflows of a repository that can be read."""
    for file in sorted((repository / _FOLDER).glob("*.y*ml")):
        if file.is_file() and file.stat().st_size <= _LARGEST:
            workflow = load(file.read_text(encoding="utf-8", errors="replace"))
            if isinstance(workflow, dict):
                yield workflow


def _uses_this_action(workflow: Mapping[str, Any]) -> bool:
    jobs = workflow.get("jobs")
    steps = [
        step
        for job in (jobs.values() if isinstance(jobs, dict) else ())
        if isinstance(job, dict) and isinstance(job.get("steps"), list)
        for step in job["steps"]
        if isinstance(step, dict)
    ]
    return any(_USES.match(str(step.get("uses"))) for step in steps)


def _events(workflow: Mapping[str, Any]) -> list[str]:
    """What `on:` names, in any of its three forms."""
    on = workflow.get("on")
    return [str(event) for event in on] if isinstance(on, list | dict) else [str(on)]
