"""Opening and loading a project, and the checks that need no plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.project import base_branch, checks, opening, unit_tests
    from ci_bot.worker.project.checks import (
        BOT,
        PlanSettings,
        check_project_formatting,
        lint_project,
        read_plan_settings_of_project,
    )
    from ci_bot.worker.project.configuration import (
        configure_projects,
        create_project_context,
        is_spark_gateway_of_project,
        make_project_place,
        require_spark_gateway_of_project,
    )
    from ci_bot.worker.project.loading import (
        FIX,
        list_lfs_pointers,
        list_lfs_pointers_named_in_project,
        list_lfs_pointers_that_project_loads,
        list_project_files_below,
        list_seed_files_of_project,
        load_project,
        load_project_alone,
        make_missing_prod_of_project_error,
    )
    from ci_bot.worker.project.merge_support import (
        GatewayFacts,
        describe_merge_obstacle_in_project,
        list_gateways_of_project,
        read_catalog_settings_of_session,
    )
    from ci_bot.worker.project.opening import (
        UNPIN_HINT,
        OpenProject,
        ProjectConfigFacts,
        ProjectStateFacts,
        collect_versions_of_project,
        describe_project,
    )
    from ci_bot.worker.project.unit_tests import (
        is_file_of_every_project_model,
        list_files_that_define_model,
        mark_unit_tests_touched_by_change,
        run_unit_tests,
    )

__getattr__ = open_on_demand(
    __name__,
    {
        "loading": [
            "make_missing_prod_of_project_error",
            "load_project",
            "load_project_alone",
            "FIX",
            "list_project_files_below",
            "list_lfs_pointers_that_project_loads",
            "list_lfs_pointers_named_in_project",
            "list_lfs_pointers",
            "list_seed_files_of_project",
        ],
        "base_branch": [],
        "checks": [
            "BOT",
            "PlanSettings",
            "check_project_formatting",
            "lint_project",
            "read_plan_settings_of_project",
        ],
        "configuration": [
            "configure_projects",
            "is_spark_gateway_of_project",
            "create_project_context",
            "make_project_place",
            "require_spark_gateway_of_project",
        ],
        "merge_support": [
            "GatewayFacts",
            "list_gateways_of_project",
            "read_catalog_settings_of_session",
            "describe_merge_obstacle_in_project",
        ],
        "opening": [
            "UNPIN_HINT",
            "ProjectConfigFacts",
            "OpenProject",
            "ProjectStateFacts",
            "describe_project",
            "collect_versions_of_project",
        ],
        "unit_tests": [
            "list_files_that_define_model",
            "is_file_of_every_project_model",
            "run_unit_tests",
            "mark_unit_tests_touched_by_change",
        ],
    },
)
