"""`ci-bot review` on a laptop: what is asked for wrongly is said before anything is started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ci_bot.bot.terminal.local import review_locally
from ci_bot.contracts.documents.plan_options import GivenFlags
from ci_bot.errors import BadInput
from ci_bot.machine import of_this_process


def test_base_branch__without_a_base_says_which_option_names_it(tmp_path: Path) -> None:
    around = replace(of_this_process(), directory=tmp_path)

    with pytest.raises(BadInput) as caught:
        review_locally(
            around,
            projects=("nowhere",),
            gateway=None,
            environment="dev",
            baseline="base-branch",
            base_ref=None,
            flags=GivenFlags(),
            start=None,
            end=None,
            python_path=(),
            worker_env="",
            timeout_minutes=1,
            output=None,
            form="terminal",
        )

    assert caught.value.exit_code == 2
    assert caught.value.reason_code == "no_base"
    assert "`--base-ref` names none" in caught.value.message
    assert "`--base-ref origin/main`" in str(caught.value.hint)
    assert "fetch-depth" not in f"{caught.value.message} {caught.value.hint}"
