"""docs/sqlmesh-patches.md: the parts of SQLMesh that the worker wraps, replaces or reads although
they are not its public interface. The sections of that page are the declaration.

`python -m tests.sqlmesh_patches` makes the table at its top. The functions here read the page, and
find in the code what reaches into SQLMesh.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "sqlmesh-patches.md"
COMPAT = "ci_bot/worker/sqlmesh_compat"
BEGIN = "<!-- made by `python -m tests.sqlmesh_patches`; edit the sections instead -->"
END = "<!-- end of the table -->"
LABELS = ("Where", "Reaches into", "Versions", "Why", "Without it", "Upstream")

# SQLMesh means these to be subclassed; a console's methods are all meant to be replaced.
_PUBLIC_BASES = frozenset({"Rule"})
_REPLACED_WHOLE = frozenset({"NoopConsole"})
# Private names of PySpark and of the standard library, which are no matter of SQLMesh.
_OF_OTHERS = frozenset({"_jvm", "_jdf", "_jsc", "_gateway", "_jsparkSession", "_exit"})
_LIBRARIES = frozenset({"sqlmesh", "sqlglot"})
_SPAN = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Patch:
    """One section of the page; `texts` has what stands behind each label."""

    title: str
    texts: Mapping[str, str]

    @property
    def places(self) -> list[str]:
        """`module.function` of the compat package, or the path of a module elsewhere."""
        return _SPAN.findall(self.texts["Where"])

    @property
    def modules(self) -> set[str]:
        """The modules that the section is about, as paths in the repository."""
        return {
            place if place.endswith(".py") else f"{COMPAT}/{place.partition('.')[0]}.py"
            for place in self.places
        }

    @property
    def internals(self) -> list[str]:
        """What is reached, as it is written; one that begins with a dot goes on from the one
        before."""
        return _SPAN.findall(self.texts["Reaches into"])

    @property
    def last_words(self) -> set[str]:
        """The last word of each."""
        return {name.rpartition(".")[2] for name in self.internals}


def read_patches(page: str) -> list[Patch]:
    """The sections of the page.

    Raises:
        ValueError: a section lacks a label, or has another one.
    """
    found = []
    for section in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        body = body.partition("\n## ")[0]
        texts = dict(re.findall(r"^- \*\*([^*]+)\*\*: (.+)$", body, flags=re.MULTILINE))
        if tuple(texts) != LABELS:
            raise ValueError(f"{title}: {', '.join(texts)}")
        found.append(Patch(title, texts))
    return found


def render_page(page: str) -> str:
    """The page with its table made from its sections."""
    rows = ["| patch | where | versions |", "|---|---|---|"]
    for patch in read_patches(page):
        anchor = re.sub(r"[^\w\- ]", "", patch.title.lower()).replace(" ", "-")
        short = [place.removeprefix("ci_bot/worker/") for place in patch.places]
        shown = ", ".join(f"`{place}`" for place in short[:2]) + (", …" if short[2:] else "")
        rows.append(f"| [{patch.title}](#{anchor}) | {shown} | {patch.texts['Versions']} |")
    before, _, rest = page.partition(BEGIN)
    return "\n".join([f"{before}{BEGIN}", "", *rows, "", f"{END}{rest.partition(END)[2]}"])


def list_modules() -> list[Path]:
    """All code that may load SQLMesh."""
    return [*sorted((ROOT / "ci_bot" / "worker").rglob("*.py")), ROOT / "ci_bot" / "linter.py"]


def find_reaches(source: str) -> dict[str, int]:
    """The names in a module's code that reach into SQLMesh or its parser, each with a line:
    private attributes, what is assigned to modules and classes of theirs, and overridden members.
    """
    tree = ast.parse(source)
    imported = _list_imports(tree)
    theirs = _list_aliases(tree, imported)
    own, found = _list_own_names(tree, theirs), dict[str, int]()
    for node in ast.walk(tree):
        for name in _names_reached(node, theirs, own, imported):
            found.setdefault(name, getattr(node, "lineno", 0))
    return found


def _names_reached(
    node: ast.AST, theirs: Mapping[str, str], own: set[str], imported: Mapping[str, str]
) -> Iterator[str]:
    if isinstance(node, ast.ClassDef):
        yield from _list_overrides(node, theirs)
    elif isinstance(node, ast.Attribute):
        on_itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        is_private = re.fullmatch(r"_[a-zA-Z]\w*", node.attr) is not None
        if is_private and not on_itself and node.attr not in own | _OF_OTHERS:
            yield node.attr
        changed = isinstance(node.ctx, ast.Store | ast.Del) and not on_itself
        if changed and isinstance(node.value, ast.Name) and node.value.id in theirs:
            yield node.attr
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        of = ast.unparse(node.value)
        is_namespace = of.startswith("vars(") or of.endswith(".__dict__") or of in theirs
        if is_namespace and isinstance(node.slice, ast.Constant):
            yield str(node.slice.value)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
        target, name = node.args[0], node.args[1]
        if isinstance(name, ast.Constant):
            yield str(name.value)
        elif ast.unparse(target) in imported:
            yield imported[ast.unparse(target)].rpartition(".")[2]


def _list_overrides(node: ast.ClassDef, theirs: Mapping[str, str]) -> Iterator[str]:
    for base in node.bases:
        path = theirs.get(ast.unparse(base).partition("[")[0])
        name = (path or "").rpartition(".")[2]
        if path is None or name in _PUBLIC_BASES or name.endswith("Error"):
            continue
        yield name
        members = dir(find_object(path)) if name not in _REPLACED_WHOLE else ()
        yield from (one for one in _list_members(node) if one in members)


def _list_members(node: ast.ClassDef) -> Iterator[str]:
    for item in node.body:
        names = [getattr(item, "name", None)]
        if isinstance(item, ast.Assign | ast.AnnAssign):
            targets = item.targets if isinstance(item, ast.Assign) else [item.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
        yield from (name for name in names if name and not name.startswith("__"))


def _list_imports(tree: ast.AST) -> dict[str, str]:
    """What a name of the module stands for, of the two libraries."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _LIBRARIES:
            found |= {item.asname or item.name: f"{node.module}.{item.name}" for item in node.names}
        elif isinstance(node, ast.Import):
            for item in node.names:
                if item.name.split(".")[0] in _LIBRARIES:
                    found[item.asname or item.name.split(".")[0]] = (item.asname and item.name) or (
                        item.name.split(".")[0]
                    )
    return found


def _list_aliases(tree: ast.AST, imported: Mapping[str, str]) -> dict[str, str]:
    """These, names that they are assigned to (`kind: Any = SqlModel`), and classes made of them."""
    found = dict(imported)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
            for base in (base for base in bases if base in found):
                found[node.name] = found[base]
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        pairs = list(zip(targets, [node.value] * len(targets), strict=True))
        if isinstance(targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(targets[0].elts, node.value.elts, strict=True))
        for target, value in pairs:
            text = ast.unparse(value)
            if text.startswith("vars("):
                text = text[5:-1]
            first, _, rest = text.partition(".")
            if isinstance(target, ast.Name) and first in imported and re.fullmatch(r"[\w.]+", text):
                found[target.id] = imported[first] + (f".{rest}" if rest else "")
    return found


def _list_own_names(tree: ast.AST, theirs: Mapping[str, str]) -> set[str]:
    """Private names that the module gives to objects of its own."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            overrides = set(_list_overrides(node, theirs))
            found |= {name for name in _list_members(node) if name not in overrides}
        elif isinstance(node, ast.Attribute) and _is_stored_on_self(node):
            found.add(node.attr)
    return found


def _is_stored_on_self(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"


def find_object(path: str) -> Any:
    """What a dotted path leads to. Raises LookupError if the installed library has no such thing."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            if not hasattr(found, part):
                raise LookupError(path)
            found = getattr(found, part)
        return found
    raise LookupError(path)


def is_installed(path: str) -> bool:
    """Whether the installed library has it: as an attribute, or as a name in the code of the module
    or class (a field of its objects)."""
    owner, _, name = path.rpartition(".")
    try:
        found = find_object(owner)
    except LookupError:
        return name in _read_module(owner)
    if hasattr(found, name):
        return True
    kinds = inspect.getmro(found)[:-1] if inspect.isclass(found) else [found]
    return any(re.search(rf"\b{name}\b", inspect.getsource(kind)) for kind in kinds)


def _read_module(path: str) -> str:
    """The code of a module that needs a package which is not installed, such as dbt."""
    library, _, rest = path.partition(".")
    root = Path(str(importlib.import_module(library).__file__)).parent
    file = root / f"{rest.replace('.', '/')}.py"
    return file.read_text("utf-8") if file.is_file() else ""


def find_lost_overrides(patch: Patch, sources: Mapping[str, str]) -> list[str]:
    """Members that a section says are overridden, and that no subclass in its modules overrides:
    under another name nobody calls them. Args: the code of its modules."""
    reached = {name for source in sources.values() for name in find_reaches(source)}
    return [
        path
        for path, known in resolve_internals(patch)
        for owner, _, name in [path.rpartition(".")]
        if known
        and owner.rpartition(".")[2] in reached
        and name not in reached
        and inspect.isclass(kind := find_object(owner))
        and isinstance(inspect.getattr_static(kind, name, None), FunctionType | property)
    ]


def resolve_internals(patch: Patch) -> Iterator[tuple[str, bool]]:
    """Each name of a section with its whole path, and whether the installed library has it."""
    before = ""
    for written in patch.internals:
        paths = [written]
        if written.startswith("."):
            owners = [before.rpartition(".")[0], before.rpartition(".")[0].rpartition(".")[0]]
            paths = [f"{owner}{written}" for owner in owners]
        before = next((path for path in paths if is_installed(path)), paths[0])
        yield before, is_installed(before)


if __name__ == "__main__":
    PAGE.write_text(render_page(PAGE.read_text("utf-8")), encoding="utf-8")
