"""What other environments of the same state have to do with the models of a plan.

An environment of a pull request is made by an apply and removed when the pull request is closed, so
those that the ledger has are of open ones. One that was never applied is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlmesh.core.snapshot import Snapshot

from ci_bot.contracts.environment import PROD
from ci_bot.contracts.messages import Owner
from ci_bot.worker import compat
from ci_bot.worker.plan.planning import Planned
from ci_bot.worker.records.ledger import Ledger

Key = tuple[str, str]


def also_changed(
    context: Any, ledger: Ledger, planned: Planned, owner: Owner, environment: str
) -> Mapping[str, list[str]]:
    """The other pull requests (`#141`) that change what this plan changes directly or removes.

    By fully qualified name. A pull request that makes the very same change, as one does that is
    stacked on this one, is none; nor is one in which the model only follows another.
    """
    own = _own_changes(context, planned)
    others = {
        row.environment: row
        for row in (ledger.of_owner(owner.name) if own else ())
        if row.environment != environment and row.pr_number is not None
    }
    recorded = {
        name: {(item.name, item.identifier) for item in row.snapshots if item.name in own}
        for name, row in others.items()
    }
    used = {name: keys & _in_use(context, name) for name, keys in recorded.items() if keys}
    theirs = compat.full_snapshots(context, {key for keys in used.values() for key in keys})
    found: dict[str, list[str]] = {}
    for name, keys in sorted(used.items(), key=lambda item: others[item[0]].pr_number or 0):
        for key in keys & theirs.keys():
            new, prod = own[key[0]]
            if not _same(theirs[key], prod) and not (new and _same(theirs[key], new)):
                found.setdefault(key[0], []).append(f"#{others[name].pr_number}")
    return found


def _own_changes(context: Any, planned: Planned) -> dict[str, tuple[Snapshot | None, Snapshot]]:
    """What the plan changes directly or removes: (new snapshot, prod's) by name."""
    diff = planned.plan.context_diff
    changed: dict[str, tuple[Snapshot | None, Snapshot]] = {
        name: (new, old)
        for name, (new, old) in diff.modified_snapshots.items()
        if diff.directly_modified(name) and new.is_model
    }
    removed = context.state_reader.get_snapshots(diff.removed_snapshots.values())
    return changed | {item.name: (None, item) for item in removed.values() if item.is_model}


def _in_use(context: Any, environment: str) -> set[Key]:
    """The snapshots that an environment of the state consists of now."""
    stored = context.state_reader.get_environment(environment)
    return {(info.name, info.identifier) for info in stored.snapshots} if stored else set()


def _same(one: Snapshot, other: Snapshot) -> bool:
    """Whether two versions of a model have one definition, whatever they read."""
    mine, its = one.fingerprint, other.fingerprint
    return bool(mine.data_hash == its.data_hash and mine.metadata_hash == its.metadata_hash)


def users_of_restated(context: Any, planned: Planned, environment: str) -> Mapping[str, list[str]]:
    """The other environments that use a table of which this plan restates intervals.

    By fully qualified name. Asked only where something is restated: it reads all environments.
    """
    restated = {
        s_id.name: planned.snapshots[s_id]
        for s_id in planned.plan.restatements
        if planned.flags.restate_models and s_id in planned.snapshots
    }
    if not restated:
        return {}
    found: dict[str, list[str]] = {}
    for name, infos in sorted(compat.environment_snapshots(context).items()):
        for info in infos if name not in (environment, PROD) else ():
            ours = restated.get(info.name)
            if ours is not None and (
                info.version == ours.version
                if planned.deployable.is_deployable(ours)
                else info.dev_version == ours.dev_version
            ):
                found.setdefault(info.name, []).append(name)
    return found
