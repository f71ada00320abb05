"""Opening and loading a project, and the checks that need no plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.project import base_branch, checks, opening, unit_tests
    from ci_bot.worker.project.checks import (
        BOT,
        PlanSettings,
        check_formatting,
        lint_project,
        plan_settings,
    )
    from ci_bot.worker.project.configuration import (
        configure_projects,
        create_context,
        is_spark_gateway,
        make_project_place,
        require_spark,
    )
    from ci_bot.worker.project.loading import (
        FIX,
        list_files_below,
        list_loaded_pointers,
        list_pointers,
        list_pointers_named_in_code,
        list_seed_files,
        load_alone,
        load_project,
        make_missing_prod_error,
    )
    from ci_bot.worker.project.merge_support import (
        GatewayFacts,
        describe_merge_obstacle,
        list_gateways,
        read_catalog_settings,
    )
    from ci_bot.worker.project.opening import (
        UNPIN_HINT,
        ConfigFacts,
        OpenProject,
        StateFacts,
        collect_versions,
        describe_project,
    )
    from ci_bot.worker.project.unit_tests import (
        list_defining_files,
        mark_touched_failures,
        reaches_every_model,
        run_unit_tests,
    )

__all__ = [
    "BOT",
    "FIX",
    "UNPIN_HINT",
    "ConfigFacts",
    "GatewayFacts",
    "OpenProject",
    "PlanSettings",
    "StateFacts",
    "base_branch",
    "check_formatting",
    "checks",
    "collect_versions",
    "configure_projects",
    "create_context",
    "describe_merge_obstacle",
    "describe_project",
    "is_spark_gateway",
    "lint_project",
    "list_defining_files",
    "list_files_below",
    "list_gateways",
    "list_loaded_pointers",
    "list_pointers",
    "list_pointers_named_in_code",
    "list_seed_files",
    "load_alone",
    "load_project",
    "make_missing_prod_error",
    "make_project_place",
    "mark_touched_failures",
    "opening",
    "plan_settings",
    "reaches_every_model",
    "read_catalog_settings",
    "require_spark",
    "run_unit_tests",
    "unit_tests",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "loading": [
            "make_missing_prod_error",
            "load_project",
            "load_alone",
            "FIX",
            "list_files_below",
            "list_loaded_pointers",
            "list_pointers_named_in_code",
            "list_pointers",
            "list_seed_files",
        ],
        "base_branch": [],
        "checks": ["BOT", "PlanSettings", "check_formatting", "lint_project", "plan_settings"],
        "configuration": [
            "configure_projects",
            "is_spark_gateway",
            "create_context",
            "make_project_place",
            "require_spark",
        ],
        "merge_support": [
            "GatewayFacts",
            "list_gateways",
            "read_catalog_settings",
            "describe_merge_obstacle",
        ],
        "opening": [
            "UNPIN_HINT",
            "ConfigFacts",
            "OpenProject",
            "StateFacts",
            "describe_project",
            "collect_versions",
        ],
        "unit_tests": [
            "list_defining_files",
            "reaches_every_model",
            "run_unit_tests",
            "mark_touched_failures",
        ],
    },
)
