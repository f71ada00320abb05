"""Which packages the Python code of a project imports that the image does not have."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator

# The image's packages, by the names that code imports. tests/contract/test_setup.py holds them to
# requirements.lock.
IMAGE_MODULES = frozenset({
    "IPython", "click", "croniter", "cryptography", "dateparser", "dateutil", "dotenv",
    "duckdb", "github", "humanize", "hyperscript", "importlib_metadata", "ipywidgets",
    "jinja2", "json_stream", "markupsafe", "numpy", "packaging", "pandas", "psutil",
    "psycopg2", "py4j", "pydantic", "pydantic_core", "pygments", "pymysql", "pyspark",
    "pytz", "requests", "rich", "ruamel", "setuptools", "sqlglot", "sqlmesh", "sqlmesh_dbt",
    "tenacity", "time_machine", "typing_extensions", "tzlocal", "urllib3",
})  # fmt: skip


def list_missing_imports(texts: Iterable[str], own: Iterable[str]) -> list[str]:
    """The packages that files import, but those of Python, of the image, and the project's own.

    Args:
        own: Names of the modules and packages that lie in the repository.
    """
    known = IMAGE_MODULES | sys.stdlib_module_names | set(own)
    return sorted({name for text in texts for name in _iterate_imported(text)} - known)


def _iterate_imported(text: str) -> Iterator[str]:
    """The first part of each absolute import, wherever it stands."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
