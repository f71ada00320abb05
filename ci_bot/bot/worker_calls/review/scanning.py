"""What goes from a scan of the changed files into a review."""

from __future__ import annotations

from collections.abc import Container, Iterable

from ci_bot.bot.worker_calls.client import WorkerClient
from ci_bot.contracts.documents.plan import Finding
from ci_bot.contracts.documents.report import ReviewFacts
from ci_bot.contracts.messages import ReviewRequest, ScanRequest
from ci_bot.contracts.scan import ScanFacts


def scan_of(
    client: WorkerClient, request: ReviewRequest, copied_from: Iterable[str] = ()
) -> ScanRequest | None:
    """The question about the changed files that goes with a review; None where it knows of none."""
    if request.changed_files is None:
        return None
    return client.request(
        ScanRequest,
        owner=request.owner,
        changed_files=request.changed_files,
        unread_files=request.unread_files,
        before_dir=request.before_dir,
        copied_from=list(copied_from),
    )


def with_scan(
    facts: ReviewFacts, scanned: ScanFacts | None, *, believed: bool, loaded: Container[str] | None
) -> ReviewFacts:
    """The facts with what the files say by themselves; more of that where no model is known.

    Args:
        believed: The plan was made without code of the pull request beside it, so what it says of
            the statements counts; else what stands in the files counts, too.
        loaded: The changed files that were opened on load; None where that is not known.
    """
    if scanned is None:
        return facts
    found = [*facts.findings, *scanned.findings]
    unplanned = facts.failure is not None or (
        bool(facts.base_failures) and not facts.project.models
    )
    if unplanned:
        found += scanned.without_plan
    if unplanned or not believed:
        # Only a blocker of the plan's own takes its place: a milder word may be a lie.
        told = {(item.rule, item.path) for item in facts.findings if item.severity == "blocker"}
        found += [
            item
            for item in scanned.statements
            if (item.rule, item.path) not in told
            and (unplanned or loaded is None or item.path in loaded)
        ]
    timings = {**facts.timings, "scan": scanned.seconds}
    planned: dict[str, list[str]] = {}
    for change in facts.changes:
        planned.setdefault(change.path or "", []).append(change.model)
    called = [_called(item, planned.get(item.path or "", ())) for item in found]
    return facts.model_copy(update={"findings": called, "timings": timings})


def _called(finding: Finding, models: Iterable[str]) -> Finding:
    """The finding with its model called as in the plan. A scan has only what stands in the file,
    with a catalog that is the default one, or without a schema.

    Args:
        models: the changed models of that file.
    """
    written = finding.model
    for name in models if written else ():
        if f".{written}".endswith(f".{name}") or f".{name}".endswith(f".{written}"):
            return finding.model_copy(update={"model": name})
    return finding
