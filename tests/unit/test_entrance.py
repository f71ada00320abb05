"""A package's public names, of which each is loaded when somebody first uses it."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_name_of_a_module_that_does_not_import__says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a SQLGlot that lacks an expression: Python itself would hide the cause."""
    package = tmp_path / "rooms"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from ci_bot.entrance import open_on_demand\n"
        "__getattr__ = open_on_demand(__name__, {'inner': ['find_door']})\n"
    )
    (package / "inner.py").write_text("import os\nos.newer_than_this\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ImportError, match=r"rooms\.inner does not import: .*newer_than_this"):
        from rooms import find_door  # type: ignore[import-not-found]  # noqa: F401
