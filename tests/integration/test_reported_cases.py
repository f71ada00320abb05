"""What people have reported of SQLMesh, and what becomes of it here.

Run with the version that is installed; `tests.matrix` runs them with the reported ones, too.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import sqlmesh
from sqlmesh.core.context import Context

from ci_bot.protocol.supported_versions import parse_release
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.worker import Client

# A file that is gone between a listing and a look is no error any more.
LOOKS_CAREFULLY = (0, 235)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = write_duck_shop(tmp_path)
    run_prod(made, "2024-01-11")
    return made


def cached(shop: Shop) -> dict[str, tuple[bytes, int] | None]:
    """Every file of the project's own cache with its content and age; None for a dangling link."""
    return {
        str(path.relative_to(shop.project)): (path.read_bytes(), path.stat().st_mtime_ns)
        if path.exists()
        else None
        for path in (shop.project / ".cache").rglob("*")
        if not path.is_dir()
    }


def test_cache__with_an_entry_that_vanishes__stops_plain_sqlmesh_and_no_review(shop: Shop) -> None:
    """Models were deleted, and `Context` failed with FileNotFoundError of an entry of the optimized
    queries' cache (0.227.1). An entry that is listed and cannot be looked at is a dangling link."""
    (entry, *_) = sorted((shop.project / ".cache" / "optimized_query").iterdir())
    entry.with_name(f"{entry.name}9").symlink_to("gone")
    before = cached(shop)
    if parse_release(sqlmesh.__version__) < LOOKS_CAREFULLY:
        with pytest.raises(FileNotFoundError, match="optimized_query"):
            Context(paths=[str(shop.project)]).close()
        assert cached(shop).keys() == before.keys()

    report = Client(shop.project).review("pr_1")

    assert report.failure is None
    assert report.decision == "no_changes"
    assert cached(shop) == before


def test_cache__with_entries_of_deleted_models__is_not_asked(shop: Shop) -> None:
    stale = shop.project / ".cache" / "optimized_query"
    shop.write("models/gone.sql", "MODEL (name shop.gone, kind FULL);\n\nSELECT 1 AS one\n")
    Context(paths=[str(shop.project)]).close()
    (shop.project / "models" / "gone.sql").unlink()
    entries = [path for path in stale.iterdir() if "gone" in path.name]
    assert entries, "the deleted model has an entry"
    for path in entries:
        os.utime(path, (0, 0))
    before = cached(shop)

    report = Client(shop.project).review("pr_1")

    assert (report.failure, report.decision) == (None, "no_changes")
    assert cached(shop) == before


def test_end_of_one_environment__leaves_the_others(shop: Shop) -> None:
    """`delete_expired_environments` deletes every expired one below 0.235."""
    from ci_bot.worker import sqlmesh_compat

    shop.edit("models/top_customers.sql", "r.revenue > 100", "r.revenue > 50")
    context = Context(paths=[str(shop.project)])
    for name in ("pr_1", "pr_2", "kept"):
        context.apply(context.plan_builder(name, skip_tests=True).build())
    for name in ("pr_1", "pr_2"):
        context.state_sync.invalidate_environment(name)
    ended, kept = map(context.state_sync.get_environment, ("pr_1", "kept"))
    assert ended is not None
    assert kept is not None
    sqlmesh_compat.mark_sqlmesh_environment_unfinished(context, ended, lives_until=0)

    assert sqlmesh_compat.delete_sqlmesh_environment_record(context, ended)
    assert not sqlmesh_compat.delete_sqlmesh_environment_record(context, kept)  # which is whole

    left = {environment.name for environment in context.state_sync.get_environments()}
    context.close()
    assert left == {"prod", "pr_2", "kept"}
