"""Opening and loading a project, and the checks that need no plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.project import base_branch, checks, opening, unit_tests, validation
    from ci_bot.worker.project.checks import (
        BOT,
        PlanSettings,
        check_formatting,
        lint_project,
        plan_settings,
    )
    from ci_bot.worker.project.configuration import (
        configure_projects,
        is_spark,
        new_context,
        place_of,
        require_spark,
    )
    from ci_bot.worker.project.loading import load_alone, load_project
    from ci_bot.worker.project.merge_support import (
        GatewayFacts,
        list_gateways,
        read_catalog_settings,
        why_no_merge,
    )
    from ci_bot.worker.project.missing_content import (
        FIX,
        list_files_below,
        list_loaded,
        list_named_in_code,
        list_pointers,
        list_seed_files,
    )
    from ci_bot.worker.project.missing_prod import no_prod_error
    from ci_bot.worker.project.opening import (
        UNPIN_HINT,
        ConfigFacts,
        OpenProject,
        StateFacts,
        described_project,
        versions_of,
    )
    from ci_bot.worker.project.unit_tests import (
        files_of,
        reaches_every_model,
        run_unit_tests,
        with_touched,
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
    "configure_projects",
    "described_project",
    "files_of",
    "is_spark",
    "lint_project",
    "list_files_below",
    "list_gateways",
    "list_loaded",
    "list_named_in_code",
    "list_pointers",
    "list_seed_files",
    "load_alone",
    "load_project",
    "new_context",
    "no_prod_error",
    "opening",
    "place_of",
    "plan_settings",
    "reaches_every_model",
    "read_catalog_settings",
    "require_spark",
    "run_unit_tests",
    "unit_tests",
    "validation",
    "versions_of",
    "why_no_merge",
    "with_touched",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "missing_prod": ["no_prod_error"],
        "base_branch": [],
        "checks": ["BOT", "PlanSettings", "check_formatting", "lint_project", "plan_settings"],
        "configuration": [
            "configure_projects",
            "is_spark",
            "new_context",
            "place_of",
            "require_spark",
        ],
        "loading": ["load_project", "load_alone"],
        "merge_support": ["GatewayFacts", "list_gateways", "read_catalog_settings", "why_no_merge"],
        "missing_content": [
            "FIX",
            "list_files_below",
            "list_loaded",
            "list_named_in_code",
            "list_pointers",
            "list_seed_files",
        ],
        "opening": [
            "UNPIN_HINT",
            "ConfigFacts",
            "OpenProject",
            "StateFacts",
            "described_project",
            "versions_of",
        ],
        "unit_tests": ["files_of", "reaches_every_model", "run_unit_tests", "with_touched"],
        "validation": [],
    },
)
