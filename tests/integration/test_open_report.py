"""`ci-bot review --open`: the page comes up in the browser that the user has chosen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.conftest import REPOSITORY
from tests.projects.duck import write_duck_shop


def test_review__opened_in_a_browser(tmp_path: Path) -> None:
    shop = write_duck_shop(tmp_path / "shop")
    browser, told = tmp_path / "browser", tmp_path / "told"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {told}\n')
    browser.chmod(0o755)
    output = tmp_path / "files"
    done = subprocess.run(
        [sys.executable, "-m", "ci_bot", "review", "--open", "--output", str(output)],
        cwd=shop.project,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "BROWSER": str(browser)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    page = Path(unquote(urlsplit(told.read_text()).path))
    assert page == output / "report.html"
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert told.read_text() in done.stderr
    assert sorted(path.name for path in output.iterdir()) == [
        *("report.html", "report.json", "report.md", "report.sarif")
    ]
