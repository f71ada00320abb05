"""Who must do what about a state that another version of SQLMesh wrote."""

from __future__ import annotations

import pytest

from ci_bot.worker.messages.problems import make_other_version_error


@pytest.mark.parametrize(
    ("written_by", "installed", "says", "silent"),
    [
        ("0.227.1", "0.236.4", ("Pin `sqlmesh==0.227.1`", "sqlmesh migrate"), "newer"),
        ("0.236.4", "0.227.1", ("Pin `sqlmesh==0.236.4`", "prod is built"), "sqlmesh migrate"),
        ("0.236.4", "0.236.4", ("of another version, though", "sqlmesh migrate"), "Pin `sqlmesh=="),
        ("0.200.0", "0.236.4", ("older than", "0.227.1 to", "sqlmesh migrate"), "Pin `sqlmesh=="),
        ("0.240.0", "0.236.4", ("newer than", "take a newer release"), "Pin `sqlmesh=="),
    ],
)
def test_hint__names_what_helps_and_nothing_else(
    written_by: str, installed: str, says: tuple[str, ...], silent: str
) -> None:
    told = make_other_version_error(written_by, 100, installed=installed)
    hint = told.hint or ""
    assert (told.exit_code, told.reason_code) == (2, "state_version")
    assert f"{written_by} (schema 100), and this run has {installed}" in told.message
    assert all(part in hint for part in (*says, "never migrates"))
    assert silent not in hint
