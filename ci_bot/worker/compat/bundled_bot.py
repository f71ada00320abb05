"""What a project's configuration says to SQLMesh's own CI bot."""

from __future__ import annotations

from typing import Any


def written_bot_settings(config: Any) -> dict[str, Any]:
    """The keys that a configuration writes under `cicd_bot:`, by their names there, with values.

    Null counts as not written. What SQLMesh copies there from `plan:` does not count either; it
    is told by being the very same object. A configuration of a class of the project's own reaches
    us with every default set, so there what equals a default was most likely not written.
    (`GithubCICDBotConfig`, `Config._inherit_project_config_in_cicd_bot`, `convert_config_type`)
    """
    bot = getattr(config, "cicd_bot", None)
    if bot is None:
        return {}
    inherited = {
        "auto_categorize_changes": config.plan.auto_categorize_changes,
        "pr_include_unmodified": config.plan.include_unmodified,
    }
    fields = type(bot).model_fields
    whole = {name for name, info in fields.items() if info.default is not None} <= bot.fields_set
    found: dict[str, Any] = {}
    for field in sorted(bot.fields_set & set(fields)):
        name, value = fields[field].alias or field, getattr(bot, field)
        copied = name in inherited and value is inherited[name]
        default = whole and value in (fields[field].default, inherited.get(name))
        if value is not None and not copied and not default:
            found[name] = value
    return found


def known_bot_settings(bot: Any) -> set[str]:
    """The keys that the installed version of SQLMesh's bot knows. (`GithubCICDBotConfig`)"""
    return {info.alias or name for name, info in type(bot).model_fields.items()}
