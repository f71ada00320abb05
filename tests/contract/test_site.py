"""docs/ is a site without a broken link: pages, anchors, and files of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from html import unescape
from pathlib import Path

import pytest

from ci_bot.bot.cli.setup.plan_files import find_action_release
from tests.conftest import REPOSITORY

ELSEWHERE = f"https://github.com/{find_action_release(None).repository}/blob/main/"


def build_site(repository: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """The site of `repository`. Each warning is an error; with `--quiet` there would be none."""
    program = shutil.which("mkdocs", path=sysconfig.get_path("scripts"))
    assert program, "mkdocs is missing; install requirements-dev.lock"
    return subprocess.run(
        [program, "build", "--strict", "--site-dir", site],
        cwd=repository,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The built pages, by their address."""
    site = tmp_path_factory.mktemp("site")
    done = build_site(REPOSITORY, site)
    assert done.returncode == 0, done.stdout + done.stderr
    return {
        path.relative_to(site).as_posix(): path.read_text("utf-8") for path in site.rglob("*.html")
    }


def test_site__links_to_files_of_the_repository_that_exist(pages: Mapping[str, str]) -> None:
    assert len(pages) > 150
    linked = {
        unescape(target).partition("#")[0]
        for text in pages.values()
        for target in re.findall(rf'href="?{re.escape(ELSEWHERE)}([^" >]+)', text)
    }
    assert "README.md" in linked
    assert [target for target in linked if not (REPOSITORY / target).exists()] == []


def test_site__has_each_page_in_its_navigation(pages: Mapping[str, str]) -> None:
    """The first page of a folder is easily taken for the page of the section around it."""
    text = pages["numbers/index.html"]
    shown = set(re.findall(r'<a href="?([^" >]*)"? class="?md-nav__link', text))
    named = {path.stem for path in (REPOSITORY / "docs").glob("*.md")} - {"README", "numbers"}
    wanted = {"..", "./", *(f"../{name}/" for name in ("rules", *named))}
    assert wanted <= shown, sorted(wanted - shown)


def test_site__has_no_table_and_no_list_that_is_text(pages: Mapping[str, str]) -> None:
    """GitHub takes either right below a line of text, and the site does not."""
    for address, text in pages.items():
        plain = re.sub(r"<(pre|script)\b.*?</\1>", "", text, flags=re.DOTALL)
        for paragraph in re.findall(r"<p>(.*?)</p>", plain, re.DOTALL):
            assert not re.search(r"\n\s*(- |\d+\. |\|)", paragraph), f"{address}: {paragraph}"


def test_site__with_a_broken_link_is_not_built(tmp_path: Path) -> None:
    for name in ("docs", ".ci"):
        shutil.copytree(REPOSITORY / name, tmp_path / name)
    shutil.copy(REPOSITORY / "mkdocs.yml", tmp_path)
    broken = ("no-such-page.md", "reference.md#no-such-heading", "/reference")
    with (tmp_path / "docs" / "numbers.md").open("a") as page:
        page.writelines(f"\nSee [this]({target}).\n" for target in broken)
    done = build_site(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    told = done.stdout + done.stderr
    assert [target for target in broken if target not in told] == []
    assert "Aborted with 3 warnings in strict mode" in told
