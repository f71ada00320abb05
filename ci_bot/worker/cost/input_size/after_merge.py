"""What prod will have to build after the merge: beside the environment's cost, with Spark awake.

A pull request's environment may get a week where prod gets years, so a limit that is held against
the environment alone says little of what the change costs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ci_bot.contracts.cost.figures import Price
from ci_bot.contracts.documents.plan import Cost
from ci_bot.worker.cost.estimate import estimate
from ci_bot.worker.cost.input_size.layer import with_input_sizes
from ci_bot.worker.cost.known import known_of
from ci_bot.worker.plan.planning import Planned
from ci_bot.worker.plan.prod_plan import merge_of, work_of_merge
from ci_bot.worker.records.cost_ledger import CostLedger
from ci_bot.worker.words.names import Names
from ci_bot.worker.words.problems import sentence


def cost_of_merge(
    planned: Planned,
    *,
    context: Any,
    ledger: CostLedger,
    names: Names,
    hour_price: Price | None = None,
    say: Callable[[str], None],
    stop: Callable[[], bool],
) -> Cost | None:
    """What building the changed models in prod will cost, if they were merged now; None where
    nobody can say, which is logged, or where the merge changes nothing. Writes nothing.

    Args:
        planned: The plan of the environment.
    """
    try:
        as_prod = merge_of(context, planned)
        if as_prod is None or as_prod.plan.uncategorized:
            return None
        work = work_of_merge(as_prod, names)
        known = known_of(work, ledger, context, names)
        return with_input_sizes(
            estimate(work, known, hour_price=hour_price),
            work,
            known,
            as_prod,
            context=context,
            ledger=ledger,
            names=names,
            hour_price=hour_price,
            say=say,
            stop=stop,
        )
    except Exception as error:
        # A merge that cannot be planned is the review's finding; what it costs is then unknown.
        print(f"The cost of the merge is not known: {sentence(error)}", file=sys.stderr)  # noqa: T201 - the log
        return None
