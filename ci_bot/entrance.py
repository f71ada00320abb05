"""A package's public names, each loaded from its module when somebody first uses it.

A process loads only what it needs. Importing all modules of a package when it is first imported
would take a tenth of a review's time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType


def open_on_demand(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Makes a package's `__getattr__` (PEP 562).

    Args:
        package: Its dotted name.
        modules: The public names of each of its modules. A module without one is public itself.
    """
    homes = {name: f"{package}.{module}" for module, names in modules.items() for name in names}
    whole = {
        module.rpartition(".")[2]: f"{package}.{module}"
        for module, names in modules.items()
        if not names
    }

    def load_name(name: str) -> object:
        if name in whole:
            return _import_module(whole[name])
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(_import_module(homes[name]), name)

    return load_name


def _import_module(name: str) -> ModuleType:
    # As the `import` statement does it: `python -X importtime` does not list importlib's imports.
    # With a name in `fromlist` it returns the module itself, and not its package.
    try:
        module: ModuleType = __import__(name, fromlist=("__name__",))
    except AttributeError as error:
        # Python would take it for a name that the package does not have, and hide the cause.
        raise ImportError(f"{name} does not import: {error}") from error
    return module
