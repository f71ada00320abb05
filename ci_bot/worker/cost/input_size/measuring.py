"""Asks what batches of models will read: one batch of each, then more of them, as time allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ci_bot.worker.cost.input_size.batches import spread
from ci_bot.worker.cost.input_size.rates import InputSize
from ci_bot.worker.plan.planning import Interval
from ci_bot.worker.words.problems import sentence

# Looking at a query takes tenths of a second. An apply of many models must not wait longer.
BUDGET_SECONDS = 60.0
# As many equal answers say that the size does not depend on the range: no partition is pruned.
_EQUAL = 3


@dataclass
class Asked:
    """A model whose size is not known yet.

    Attributes:
        batches: the ranges that will be built, oldest first.
        read: gives the bytes that one of them reads; None where nobody can say.
    """

    model: str
    kind: str
    batches: Sequence[Interval]
    read: Callable[[Interval], int | None]
    found: list[int] = field(default_factory=list)
    lost: bool = False


def measure(
    models: Sequence[Asked],
    *,
    now: Callable[[], float],
    stop: Callable[[], bool],
    log: Callable[[str], None],
    budget_seconds: float = BUDGET_SECONDS,
) -> Mapping[str, InputSize]:
    """The sizes of those models that could be measured.

    Args:
        now: Seconds, of any clock.
        stop: Whether the run was asked to stop; then what is known is given.
        log: Takes why a model could not be measured.
    """
    end = now() + budget_seconds
    waiting = [(item, spread(item.batches)) for item in models if item.batches]
    for turn in range(max((len(order) for _, order in waiting), default=0)):
        for item, order in waiting:
            if stop() or now() >= end:
                return _sizes(models)
            if turn < len(order) and not item.lost and not _is_settled(item):
                _ask(item, order[turn], log)
    return _sizes(models)


def _ask(item: Asked, span: Interval, log: Callable[[str], None]) -> None:
    try:
        size = item.read(span)
    except (
        Exception
    ) as error:  # of the renderer, of macros, of Spark: it is unknown, whatever it is
        log(f"How much {item.model} will read is not known: {sentence(error)}")
        size = None
    if size is None:
        item.lost = True
    else:
        item.found.append(size)


def _is_settled(item: Asked) -> bool:
    return len(item.found) >= _EQUAL and len(set(item.found)) == 1


def _sizes(models: Sequence[Asked]) -> dict[str, InputSize]:
    return {
        item.model: InputSize(
            bytes=round(sum(item.found) / len(item.found) * len(item.batches)),
            batches=len(item.batches),
            kind=item.kind,
        )
        for item in models
        if item.found and not item.lost
    }
