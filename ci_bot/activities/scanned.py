"""What goes from a scan of the changed files into a review."""

from __future__ import annotations

from ci_bot.contracts.messages import ReviewAsk, ScanAsk
from ci_bot.contracts.report import ReviewFacts
from ci_bot.contracts.scan import ScanFacts


def scan_of(ask: ReviewAsk) -> ScanAsk | None:
    """The question about the changed files that goes with a review; None where it knows of none."""
    if ask.changed_files is None:
        return None
    return ScanAsk(
        projects=ask.projects,
        gateway=ask.gateway,
        workplace=ask.workplace,
        owner=ask.owner,
        changed_files=ask.changed_files,
        unread_files=ask.unread_files,
        before_dir=ask.before_dir,
    )


def with_scan(facts: ReviewFacts, scanned: ScanFacts | None) -> ReviewFacts:
    """The facts with what the files say by themselves; more of that where no model is known."""
    if scanned is None:
        return facts
    found = [*facts.findings, *scanned.findings]
    unplanned = bool(facts.base_failures) and not facts.project.models
    if facts.failure is not None or unplanned:
        found += scanned.without_plan
    timings = {**facts.timings, "scan": scanned.seconds}
    return facts.model_copy(update={"findings": found, "timings": timings})
