"""What the rules compare of two configurations, as plain values.

The base branch's configuration is read in another process, and its objects cannot leave it: they
may be of classes that its own `config.py` defines.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ci_bot.worker.project.merge_support import GatewayFacts, list_gateways


@dataclass(frozen=True)
class ConfigFacts:
    """The settings of one configuration that change models or data.

    Attributes:
        settings: values by dotted key (the parts separated by NUL), None where nothing is set.
        variables: the names of all variables, of the gateways' too, in lower case.
        gateways: what of each gateway decides about the format of tables.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    variables: frozenset[str] = frozenset()
    gateways: dict[str, GatewayFacts] = field(default_factory=dict)

    @classmethod
    def of(cls, config: Any, gateway: str | None = None) -> ConfigFacts:
        """The facts of SQLMesh's configuration object.

        Args:
            gateway: the one that runs what names none, where that is not the configuration's.
        """
        names = set(config.variables)
        for each in config.gateways.values():
            names |= set(each.variables)
        start = config.model_defaults.start
        return cls(
            settings={
                "project": config.project,
                "default_gateway": config.default_gateway,
                "model_defaults\x00dialect": config.model_defaults.dialect,
                "model_defaults\x00start": None if start is None else str(start),
                "linter\x00enabled": config.linter.enabled,
                "linter\x00rules": sorted(config.linter.rules),
                "physical_table_naming_convention": str(
                    config.physical_table_naming_convention.value
                ),
                "physical_schema_mapping": {
                    pattern.pattern: name
                    for pattern, name in config.physical_schema_mapping.items()
                },
                "ignore_patterns": list(config.ignore_patterns),
                "environment_suffix_target": str(config.environment_suffix_target.value),
            },
            variables=frozenset(name.lower() for name in names),
            gateways=list_gateways(config, gateway),
        )

    def as_values(self) -> dict[str, Any]:
        """The facts as JSON holds them; `from_values` reads them again."""
        return {**asdict(self), "variables": sorted(self.variables)}

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> ConfigFacts:
        """The facts that `as_values` gave."""
        return cls(
            dict(values["settings"]),
            frozenset(values["variables"]),
            {name: GatewayFacts(**facts) for name, facts in values["gateways"].items()},
        )
