"""The owner of an environment. Only the ledger proves it; an environment without a row is someone
else's.

A comment is no proof: a review writes one, too, and everybody with write access can edit it. A name
is no proof either, because people choose any name for their own environments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.errors import RequestRefused
from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.messages import CleanupRequest, Owner
from ci_bot.worker.messages import names_and_times
from ci_bot.worker.runtime import spark_catalog
from ci_bot.worker.state_store.ledger import REMOVED, Ledger, LedgerObject, LedgerRow

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.environment import Environment
    from sqlmesh.core.state_sync import StateReader

_TWO_PREFIXES = (
    "Two repositories on one state need different values of the input `environment-prefix`."
)


def describes_stored_environment(row: LedgerRow | None, expires: int | None) -> bool:
    """Whether the ledger's row describes the environment that SQLMesh's state has now.

    It does not if we removed that environment and someone made one with its name later.

    Args:
        expires: When the environment in the state expires, in milliseconds; None: never.
    """
    if row is None or row.phase in REMOVED:
        return False
    if row.phase == "leftover":
        # The cleanup that wrote the row has deleted the record. An older version of ci-bot may have
        # kept it; it made it expire first.
        return expires is not None and expires <= names_and_times.to_milliseconds(row.updated_at)
    return True


def read_environment_records(
    state_reader: StateReader, ledger: Ledger, environment: EnvironmentName
) -> tuple[Environment | None, LedgerRow | None]:
    """Reads SQLMesh's record and the ledger's row of an environment, from one moment.

    Another run may make or remove it between two reads: an apply writes the row first and a cleanup
    last, so the first read may be old. Reads between which the row did not change are from one
    moment.

    Returns:
        SQLMesh's record and the ledger's row, each None if there is none.
    """
    row = ledger.read_row(environment)
    while True:
        stored = state_reader.get_environment(environment)
        before, row = row, ledger.read_row(environment)
        if row == before:
            return stored, row


def find_refusal(
    environment: EnvironmentName, owner: Owner, row: LedgerRow | None, stored: Environment | None
) -> RequestRefused | None:
    """Finds why this owner may not change an environment; None if it may.

    Args:
        stored: SQLMesh's record of it, from the same moment as `row`: see
            `read_environment_records`.
    """
    claim = (
        "If it is this repository's, a person with rights on the state database can say so: "
        f"`ci-bot cleanup --project . --environment {environment} --claim` removes it, and "
        "`ci-bot apply` with `--claim` takes it over."
    )
    if row is not None and row.owner != owner.name:
        return RequestRefused(
            f"{environment} belongs to {row.owner}, not to {owner.name}.",
            hint=f"{_TWO_PREFIXES} {claim}",
            reason_code="other_owner",
        )
    if stored is not None and not describes_stored_environment(row, stored.expiration_ts):
        return RequestRefused(
            f"{environment} is in SQLMesh's state, and nothing proves that this repository made "
            "it: no apply of it is recorded.",
            hint=f"{claim} {_TWO_PREFIXES}",
            reason_code="not_ours",
        )
    return None


def check_ownership(
    environment: EnvironmentName,
    owner: Owner,
    row: LedgerRow | None,
    stored: Environment | None,
    *,
    claim: bool,
) -> None:
    """Raises the refusal that `find_refusal` gives, unless a person claims the environment.

    Args:
        claim: Whether a person claims the environment by hand.

    Raises:
        Refused: `other_owner` or `not_ours`.
    """
    found = find_refusal(environment, owner, row, stored)
    if found is not None and not claim:
        raise found


def claim_environment(
    request: CleanupRequest,
    context: Context,
    ledger: Ledger,
    row: LedgerRow | None,
    stored: Environment | None,
) -> LedgerRow | None:
    """Writes the row of an environment that a person claims, so that a cleanup that is cut off can
    continue; None if there is nothing to claim.

    Only its views count as made by us: physical tables stay.
    """
    now = names_and_times.format_iso(names_and_times.read_milliseconds_now())
    if row is not None:
        taken = row.model_copy(update={"owner": request.owner.name})
    elif stored is not None:
        taken = LedgerRow(
            environment=request.environment,
            owner=request.owner.name,
            pr_number=request.environment.pull_request_number(request.environment_prefix),
            head_sha=None,
            plan_id=None,
            phase="cleaning",
            gateway=context.selected_gateway,
            catalog=str(context.default_catalog),
            suffix_target=str(stored.suffix_target.value),
            objects=[
                LedgerObject(
                    kind="view", catalog=view.catalog, db=view.schema, name=view.name, existed=True
                )
                for view in spark_catalog.list_environment_views(context, stored).values()
            ],
            created_at=now,
            updated_at=now,
        )
    else:
        return None
    ledger.prepare_tables()
    ledger.write_row(taken)
    return taken
