"""`ci-bot review` on a laptop: what is asked for wrongly is said before anything is started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ci_bot.bot.cli.local_review import LaptopReview, review_on_laptop
from ci_bot.errors import BadInput
from ci_bot.host import make_process_machine


@pytest.mark.parametrize("base_ref", [None, "main"])
def test_base_branch__outside_of_git__says_what_to_do(tmp_path: Path, base_ref: str | None) -> None:
    around = replace(make_process_machine(), directory=tmp_path)

    with pytest.raises(BadInput) as caught:
        review_on_laptop(around, LaptopReview(baseline="base-branch", base_ref=base_ref))

    assert caught.value.exit_code == 2
    assert caught.value.reason_code == "no_commit"
    assert "names nothing to compare with" in caught.value.message
    assert caught.value.hint == "Leave it out, or commit first."
    assert "fetch-depth" not in f"{caught.value.message} {caught.value.hint}"
