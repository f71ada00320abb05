"""The bot's own rows in the state database: leases, owned environments, applies, costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.state_store import leases
    from ci_bot.worker.state_store.cost_ledger import (
        ApplyRow,
        CostLedger,
        Outcome,
        ProdRunRow,
        RunRow,
    )
    from ci_bot.worker.state_store.lease_guard import LeaseHold
    from ci_bot.worker.state_store.leases import Lease, LeaseBook, LeaseLostError, Say
    from ci_bot.worker.state_store.ledger import (
        HIDDEN_TABLES_HINT,
        REMOVED,
        Ledger,
        LedgerObject,
        LedgerPhase,
        LedgerRow,
        LedgerSnapshot,
        check_ownership_in_ledger,
        claim_environment_in_ledger,
        does_ledger_describe_stored_environment,
        find_refusal_by_ledger,
        list_ledger_objects,
        read_environment_records_of_ledger,
    )
    from ci_bot.worker.state_store.ledger_schema import KEEP_DAYS

__getattr__ = open_on_demand(
    __name__,
    {
        "cost_ledger": ["ApplyRow", "CostLedger", "Outcome", "ProdRunRow", "RunRow"],
        "lease_guard": ["LeaseHold"],
        "leases": ["Lease", "LeaseLostError", "LeaseBook", "Say"],
        "ledger": [
            "HIDDEN_TABLES_HINT",
            "Ledger",
            "LedgerObject",
            "LedgerPhase",
            "LedgerRow",
            "LedgerSnapshot",
            "REMOVED",
            "list_ledger_objects",
            "check_ownership_in_ledger",
            "claim_environment_in_ledger",
            "does_ledger_describe_stored_environment",
            "find_refusal_by_ledger",
            "read_environment_records_of_ledger",
        ],
        "ledger_schema": ["KEEP_DAYS"],
    },
)
