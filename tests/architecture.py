"""The table of packages in docs/architecture.md, made of the code and of its import contracts.

    python -m tests.architecture            writes it anew

What a package holds is the first sentence of its docstring; what it may import is read from the
contracts of `[tool.importlinter]` in pyproject.toml, which `lint-imports` holds.
"""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN = "<!-- made by `python -m tests.architecture`; edit docstrings or pyproject.toml instead -->"
END = "<!-- end of the table -->"
PACKAGE = "ci_bot"
MOST_NAMED = 4


@dataclass(frozen=True)
class Contracts:
    """The import contracts, by what they say."""

    layers: dict[str, list[list[str]]]
    protected: list[tuple[list[str], list[str]]]
    forbidden: list[tuple[list[str], list[str]]]

    @classmethod
    def read(cls, text: str) -> Contracts:
        """Those of a pyproject.toml."""
        found: list[dict[str, Any]] = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
        return cls(
            layers={
                container: [layer.split(" | ") for layer in contract["layers"]]
                for contract in found
                if contract["type"] == "layers"
                for container in contract["containers"]
            },
            protected=[
                (contract["protected_modules"], contract["allowed_importers"])
                for contract in found
                if contract["type"] == "protected"
            ],
            forbidden=[
                (contract["source_modules"], contract["forbidden_modules"])
                for contract in found
                if contract["type"] == "forbidden"
            ],
        )

    def below(self, module: str) -> list[str]:
        """The modules of ours that a module may import, outside of its own package."""
        container = module.rpartition(".")[0]
        if not container:
            return []
        found = [other for layer in self.under(module) for other in layer]
        return [name for name in found + self.below(container) if self._may(module, name)]

    def under(self, module: str) -> list[list[str]]:
        """The layers of its siblings that stand below a module, whole."""
        container, _, name = module.rpartition(".")
        layers = self.layers.get(container, [])
        for position, layer in enumerate(layers):
            if name in layer:
                return [
                    [f"{container}.{other}" for other in below] for below in layers[position + 1 :]
                ]
        return []

    def beside(self, module: str) -> list[str]:
        """The guarded packages of others that are let into this one."""
        return [
            name
            for names, importers in self.protected
            if module in importers
            for name in names
            if not name.startswith(f"{PACKAGE}.")
        ]

    def _may(self, module: str, other: str) -> bool:
        guarded = any(
            other in names and not any(_within(module, importer) for importer in importers)
            for names, importers in self.protected
        )
        refused = any(
            other in names and any(_within(module, source) for source in sources)
            for sources, names in self.forbidden
        )
        return not guarded and not refused


def table(root: Path = ROOT) -> str:
    """The table, as it has to stand in the page."""
    contracts = Contracts.read((root / "pyproject.toml").read_text("utf-8"))
    rows = [_row(root, module, contracts) for module in _ordered(root, PACKAGE, contracts)]
    return "\n".join(["| part | holds | may import |", "|---|---|---|", *rows])


def _ordered(root: Path, package: str, contracts: Contracts) -> list[str]:
    """Every package, and the modules that a layer names; from the top layer down."""
    names = [name for layer in contracts.layers.get(package, ()) for name in layer]
    folder = root / package.replace(".", "/")
    names += sorted(
        path.parent.name for path in folder.glob("*/__init__.py") if path.parent.name not in names
    )
    found = []
    for name in names:
        if name != "__main__":
            found.append(f"{package}.{name}")
            found += _ordered(root, f"{package}.{name}", contracts)
    return found


def _row(root: Path, module: str, contracts: Contracts) -> str:
    parent, _, name = module.rpartition(".")
    if name in {other for layer in contracts.layers.get(parent, ()) for other in layer}:
        says = ", ".join(_allowed(module, contracts))
    else:
        says = f"what {_short(parent)} may"
    return f"| {_short(module)} | {_holds(root, module)} | {says or 'nothing of ours'} |"


def _allowed(module: str, contracts: Contracts) -> list[str]:
    """Siblings below, what the parent may and this part may not, and guarded packages."""
    parent = module.rpartition(".")[0]
    below = contracts.below(module)
    layers = contracts.under(module)
    siblings = [_short(other, parent) for layer in layers for other in layer if other in below]
    if len(siblings) > MOST_NAMED and len(siblings) == sum(map(len, layers)):
        siblings = [f"{', '.join(siblings[: len(layers[0])])} down to {siblings[-1]}"]
    guarded = [f"*{other}*" for other in contracts.beside(module)]
    above = contracts.below(parent)
    if not above:
        return siblings + guarded
    without = [_short(other) for other in above if other not in below]
    rest = f"what {_short(parent)} may" + (f" but {', '.join(without)}" if without else "")
    return [*siblings, *guarded, rest]


def _short(module: str, parent: str = PACKAGE) -> str:
    """`bot.github` for `ci_bot.bot.github`; `github` alone beside its siblings."""
    start = f"{parent}." if module.startswith(f"{parent}.") else f"{PACKAGE}."
    return f"`{module.removeprefix(start)}`"


def _holds(root: Path, module: str) -> str:
    """The first sentence of its docstring, without the full stop."""
    path = root / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return text.partition("\n\n")[0].replace("\n", " ").partition(". ")[0].rstrip(".")


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def written(page: str, rows: str) -> str:
    """A page with these rows between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{rows}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8"), table()), "utf-8")
