"""What a checkout without secrets lacks, and how the base-branch baseline does without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.errors import BadInput
from ci_bot.protocol.base import Failure
from ci_bot.worker.messages.problems import NotLoaded
from ci_bot.worker.review.review_plan import open_for_review
from tests.security.forked import forked
from tests.security.history import first_tree, write
from tests.security.test_base_branch import ask, ports, seen

STATE_IN_ALL_SPELLINGS = {
    "by name": "gateways:\n  main:\n    connection: {type: duckdb}\n    state_connection: STATE\n",
    "the only one": "gateways:\n  connection: {type: duckdb}\n  state_connection: STATE\n",
    "gateway": "gateway:\n  connection: {type: duckdb}\n  state_connection: STATE\n",
}
# `port` cannot be empty, so reading it anyway would fail the whole configuration.
UNREADABLE_STATE = (
    "{type: postgres, host: \"{{ env_var('NO_SUCH_HOST') }}\", user: u, password: p, "
    "port: \"{{ env_var('NO_SUCH_PORT') }}\", database: state}"
)
DEFAULTS = "model_defaults: {dialect: duckdb, start: 2024-01-01}\nvariables: {floor: 10}\n"


def two_trees(root: Path, **changes: str) -> tuple[Path, Path]:
    """Base and head; the head has one description more."""
    tree = {**first_tree(root, "duckdb"), **changes}
    head = dict(tree)
    head["models/best.sql"] = tree["models/best.sql"].replace("MODEL (", "MODEL (\n  owner me,")
    return write(tree, root / "before"), write(head, root / "project")


def review_of(root: Path, base: Path, head: Path) -> dict[str, object]:
    found = forked(lambda: seen(root, "base", head, base), root)
    return {name: part for name, part in found.items() if name not in ("nodes", "edges")}


@pytest.mark.parametrize("spelling", STATE_IN_ALL_SPELLINGS)
def test_state_connection__without_its_variables_is_never_read(
    tmp_path: Path, spelling: str
) -> None:
    gateways = STATE_IN_ALL_SPELLINGS[spelling].replace("STATE", UNREADABLE_STATE)
    base, head = two_trees(tmp_path, **{"config.yaml": gateways + DEFAULTS})
    assert set(review_of(tmp_path, base, head)) == {"shop.best", "shop.best_view"}


def test_config_py__that_needs_a_missing_variable_fails_with_its_name(tmp_path: Path) -> None:
    module = "import os\n\nPASSWORD = os.environ['NO_SUCH_PASSWORD']\nconfig = None\n"
    base, head = two_trees(tmp_path)
    for tree in (base, head):
        (tree / "config.yaml").unlink()
        (tree / "config.py").write_text(module)

    def failure() -> tuple[int, tuple[Failure, ...], tuple[Failure, ...]]:
        with pytest.raises(NotLoaded) as refused:
            open_for_review(ask(tmp_path, "base", head, base), ports())
        return refused.value.exit_code, refused.value.failures, refused.value.base or ()

    code, of_head, of_base = forked(failure, tmp_path)
    assert code == 2
    assert of_head == of_base
    (told,) = of_head
    assert "needs the variable `NO_SUCH_PASSWORD`" in told.message
    assert "worker-env" in str(told.hint)
    assert (told.path, told.line) == ("config.py", 3)
    assert str(tmp_path) not in f"{told.message} {told.hint}"


def test_project_key__renamed_merges_nothing_of_the_base_into_the_head(tmp_path: Path) -> None:
    base, head = two_trees(tmp_path)
    for tree, key in ((base, "before"), (head, "after")):
        config = tree / "config.yaml"
        config.write_text(f"project: {key}\n{config.read_text()}")
    (head / "models" / "best_view.sql").unlink()
    found = review_of(tmp_path, base, head)
    # Merged from state, the removed model would count as another project's, and stay.
    assert found["shop.best_view"]["change"] == "removed"  # type: ignore[index]


def test_base__leaves_no_variable_behind_for_the_head(tmp_path: Path) -> None:
    base, head = two_trees(tmp_path)
    for tree in (base, head):
        config = tree / "config.yaml"
        text = config.read_text().replace("floor: 10", "floor: {{ env_var('FLOOR', '10') }}")
        config.write_text(text)
    (base / ".env").write_text("FLOOR=99\n")
    # The head has no .env: its own floor is 10, and the model that uses it has changed.
    assert "shop.large" in review_of(tmp_path, base, head)


def test_base__leaves_no_module_behind_for_the_head(tmp_path: Path) -> None:
    base, head = two_trees(tmp_path)
    # Read from the base branch's file, the same helper would make another Python model of it.
    assert "shop.scores" not in review_of(tmp_path, base, head)
    helper = head / "helpers" / "scoring.py"
    helper.write_text(helper.read_text().replace("+ 1", "+ 2"))
    assert "shop.scores" in review_of(tmp_path, base, head)


def test_shallow_checkout__is_bad_input_that_names_the_depth(tmp_path: Path) -> None:
    head = write(first_tree(tmp_path, "duckdb"), tmp_path / "project")
    request = ask(tmp_path, "base", head).model_copy(update={"baseline": "base-branch"})
    with pytest.raises(BadInput) as refused:
        open_for_review(request, ports())
    assert refused.value.exit_code == 2
    assert "fetch-depth: 2" in f"{refused.value.message} {refused.value.hint}"
