"""Rules on what the query of one model computes: joins, types, currencies, what Spark refuses.

A module must be imported here to take part. They are classes of SQLMesh's linter like those of
`rules/models`, which has the rules on what a model declares.
"""

from __future__ import annotations

from ci_bot.worker.rules.queries import (
    fan_outs,
    joins_and_aggregates,
    mixed_currencies,
    mixed_types,
    query_shape,
    refused_queries,
)
