"""Rules on the text of SQL as it stands in the files of a change, before any of it is rendered.

This is the place for every rule that judges raw SQL: each is a member of `TEXT_RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ci_bot.worker.rules.files.raw import macro_arguments
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import Observation

TextRule = Callable[[RuleInputs], Iterator[Observation]]

TEXT_RULES: tuple[TextRule, ...] = (macro_arguments.evaluated,)


def judged(inputs: RuleInputs) -> Iterator[Observation]:
    """What each of them sees."""
    for rule in TEXT_RULES:
        yield from rule(inputs)
