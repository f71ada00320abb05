"""Two builds of one commit hold the same files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.container.contents import contents, differences
from tests.container.engine import Engine, build_secrets
from tests.container.fixtures import ROOT, TARGET


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize("options", [(), TARGET], ids=["full", "review"])
def test_image__built_again_from_nothing__has_the_same_files(
    engine: Engine, image: str, review_image: str, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """All but what contents.py excuses with its reason."""
    again = "ci-bot:again"
    engine.build(ROOT, again, build_secrets(os.environ, tmp_path), *options, "--no-cache")
    try:
        first = contents(engine, review_image if options else image)
        assert len(first) > 10_000
        assert differences(first, contents(engine, again)) == []
    finally:
        engine.call("rmi", "--force", again, check=False)


def test_differences__are_noticed_in_content_mode_and_owner() -> None:
    one = {"a": ("0", "0o644", "0:0", "1"), "b": ("0", "0o644", "0:0", "2")}
    assert differences(one, dict(one)) == []
    for changed in (
        ("0", "0o644", "0:0", "3"),
        ("0", "0o755", "0:0", "2"),
        ("0", "0o644", "1:0", "2"),
    ):
        assert differences(one, {**one, "b": changed}) == ["b"]
    assert differences(one, {"a": one["a"], "c": one["b"]}) == ["b", "c"]
