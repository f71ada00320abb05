"""The bot's rules: each is entered where it is defined. `judge` runs those on a plan, and
`diff_risks` those on what an apply compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ci_bot.bot.decision.given import BotFacts, Limits
from ci_bot.contracts.documents.apply import TableDiff
from ci_bot.contracts.documents.report import ReviewFacts, Risk
from ci_bot.contracts.rules import Registry

PlanRule = Callable[[ReviewFacts, Limits, BotFacts], Iterator[Risk]]
DiffRule = Callable[[TableDiff, Limits], Iterator[Risk]]

judges: Registry[PlanRule] = Registry()
"""`@judges(SPEC, ...)` stands on a function that reads a review's facts and gives these risks."""

compares: Registry[DiffRule] = Registry()
"""The same for what one table's data diff says. It is given diffs that were made."""
