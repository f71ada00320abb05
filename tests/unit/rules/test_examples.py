"""The projects that `sqlmesh init` writes: no rule fails on them, and none says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlmesh.cli.project_init import ProjectTemplate, init_example_project
from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context

from ci_bot.protocol.plan import Finding
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.project.opening import ProjectConfigFacts
from ci_bot.worker.rules import RuleInputs
from tests.unit.rules.world import seen

# A reviewer who knows SQLMesh would agree with each of these about the example project: it checks
# few keys, and keeps its state in the DuckDB file of the warehouse, which the rules do not mind.
AGREED = {"missing-grain", "missing-key-audit", "uncast-projection", "external-without-audits"}


def example(path: Path, template: ProjectTemplate, engine: str) -> RuleInputs:
    """The example as a pull request that adds all of it to an empty repository."""
    init_example_project(path, engine_type=engine, dialect=engine, template=template)
    # Before anything is loaded: Python may write byte code beside what it loads.
    files = sorted(p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file())
    sqlmesh_compat.disable_sqlmesh_analytics()
    set_console(NoopConsole())
    with pytest.MonkeyPatch.context() as place:
        place.chdir(path)  # the example's database is a file of the current directory
        context = Context(paths=[str(path)])
        try:
            after = dict(context.models)
            return RuleInputs(
                before={},
                after=after,
                repository=path,
                projects=(".",),
                changed_files=tuple(files),
                files_before=lambda name: None,
                files_after=lambda name: (path / name).read_bytes(),
                config_after=ProjectConfigFacts.from_config(context.config),
                readers={
                    name: {other for other, model in after.items() if name in model.depends_on}
                    for name in {parent for model in after.values() for parent in model.depends_on}
                },
                default_dialect=context.default_dialect or "",
            )
        finally:
            context.close()


@pytest.mark.parametrize("template", [ProjectTemplate.DEFAULT, ProjectTemplate.EMPTY])
def test_example__as_a_new_project(template: ProjectTemplate, tmp_path: Path) -> None:
    found = seen(example(tmp_path, template, "duckdb"))

    assert {f.rule for f in found if f.severity in {"low", "info"}} <= AGREED
    assert [f for f in found if f.severity not in {"low", "info"}] == []


def test_example__an_edit_of_its_incremental_model(tmp_path: Path) -> None:
    inputs = example(tmp_path, ProjectTemplate.DEFAULT, "duckdb")
    name = next(name for name in inputs.after if "incremental" in name)
    model = inputs.after[name]
    edited = model.copy(update={"cron": "@hourly"})
    changed = RuleInputs(**{**inputs.__dict__, "before": {**inputs.after, name: edited}})

    found: list[Finding] = [f for f in seen(changed) if f.model == inputs.names.short_name(name)]

    assert [f.rule for f in found] == ["cron-changed"]


def test_example__uses_the_rules_in_its_own_linter(tmp_path: Path) -> None:
    init_example_project(tmp_path, engine_type="duckdb", dialect="duckdb")
    (tmp_path / "linter").mkdir()
    (tmp_path / "linter" / "ours.py").write_text("from ci_bot.linter import *\n")
    config = tmp_path / "config.yaml"
    head = config.read_text().partition("linter:")[0]
    config.write_text(f"{head}linter:\n  enabled: true\n  warn_rules: ALL\n")
    path = next((tmp_path / "models").glob("*incremental*"))
    path.write_text(path.read_text().replace("SELECT", "SELECT\n  NOW() AS built_at,", 1))
    sqlmesh_compat.disable_sqlmesh_analytics()
    set_console(NoopConsole())

    with pytest.MonkeyPatch.context() as place:
        place.chdir(tmp_path)
        context = Context(paths=[str(tmp_path)])
        found = context.lint_models(raise_on_error=False)
        context.close()

    (clock,) = [item for item in found if item.rule.name == "currenttime"]
    assert clock.violation_msg.startswith("`NOW`") or clock.violation_msg.startswith("`CURRENT")
    assert clock.violation_range is not None
    line = path.read_text().splitlines()[clock.violation_range.start.line]
    assert "NOW()" in line
