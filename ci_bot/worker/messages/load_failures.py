"""Why a project's code did not load: its file and line, and the fix.

SQLMesh passes on Python's message, which often has neither: "No module named 'pytest'" does not
name the importing file, and "EOF when reading a line" does not say that `config.py` waits for
input.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from types import TracebackType

# A chain longer than this is a loop or noise.
MAX_CAUSES = 20
# The most directories that are searched for a missing module.
MAX_DIRECTORIES = 2_000
# A model's name is one of the first properties of its MODEL block.
_MOST_BYTES_OF_MODEL_BLOCK = 64_000
_NO_NAME = re.compile(r"cannot import name '(?P<name>[^']+)' from '(?P<module>[^']+)'")
# SQLMesh names the library by its driver, and next to it the extra that brings the library.
_NO_ENGINE = re.compile(
    r"Failed to import the '(?P<engine>[^']+)' engine library"
    r"(?:.*?sqlmesh\[(?P<extra>[^\]\s]+)\])?",
    re.DOTALL,
)
_NO_SHARED_OBJECT = re.compile(r"(?P<file>[\w.+-]+\.so(?:\.\d+)*): cannot open shared object file")
_PATH_OF_MODULE = re.compile(r" \(/[^)]*\)")
_HIDDEN = (".", "__")
# SQLMesh's words for a file of a model that it cannot load. (`_failed_to_load_model_error`)
_MODEL_FILE = re.compile(r"Failed to load model from file '(?P<file>[^']+)'")
_NO_UTF_8 = re.compile(r"'utf-?8' codec can't decode byte (?P<byte>0x[0-9a-f]{2})")
_DUPLICATE = re.compile(
    r"Duplicate (?:SQL|external) model name: '(?P<model>[^']+)'"
    r"|Duplicate model name\(s\) found: (?P<first>[^,\s]+?)[,.]?(?:\s|$)"
)


@dataclass(frozen=True)
class LoadCause:
    """The cause of a failed load; each part is None if it is not known.

    Attributes:
        path: the file, relative to the tree's root.
        message: a sentence that replaces the exception's own text.
    """

    path: str | None = None
    line: int | None = None
    message: str | None = None
    hint: str | None = None
    reason_code: str | None = None


def find_load_cause(error: BaseException, root: Path) -> LoadCause:
    """Finds the cause of `error`, which was raised while files below `root` were loaded."""
    chain = list(iterate_causes_of_error(error))
    if engine := next(filter(None, (_NO_ENGINE.search(str(link)) for link in chain)), None):
        return _explain_missing_engine(engine["engine"], engine["extra"], chain)
    for link in reversed(chain):
        found = _explain_cause(link, root) or _explain_model_file(link, root)
        if found is not None:
            return found
    for link in reversed(chain):
        path, line = _find_innermost_position(link, root)
        if path is not None:
            return LoadCause(path, line)
    return LoadCause()


def find_file_named_by_load_failure(error: BaseException, root: Path) -> Path | None:
    """Finds the file that SQLMesh was loading when `error` was raised; None if there was none."""
    for link in iterate_causes_of_error(error):
        location = getattr(link, "location", None)
        if location is not None:
            return Path(location)
        for frame, _ in traceback.walk_tb(link.__traceback__):
            if _make_relative_path(frame.f_code.co_filename, root) is not None:
                return Path(frame.f_code.co_filename)
        if (
            isinstance(link, SyntaxError)
            and link.filename
            and _make_relative_path(link.filename, root)
        ):
            return Path(link.filename)
    return None


def iterate_causes_of_error(error: BaseException) -> Iterator[BaseException]:
    """Yields the exception, then its cause, and so on to the first one."""
    current: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if current is None:
            return
        yield current
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )


def _explain_cause(error: BaseException, root: Path) -> LoadCause | None:
    found: LoadCause | None = None
    if isinstance(error, SystemExit):
        found = _explain_process_exit(error, root)
    elif isinstance(error, ModuleNotFoundError) and error.name:
        found = _explain_missing_module(error, error.name, root)
    elif isinstance(error, ImportError):
        found = _explain_missing_name(error, root)
    elif isinstance(error, EOFError) and str(error) == "EOF when reading a line":
        found = _explain_input_request(error, root)
    elif isinstance(error, KeyError) and _is_raised_in(error, os.__file__):
        found = _explain_missing_variable(error, root)
    elif _is_out_of_processes(error):
        found = _explain_process_limit(error, root)
    elif isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
        found = _explain_missing_file(error, error.filename, root)
    return found


def _explain_missing_engine(
    name: str, extra: str | None, chain: Iterable[BaseException]
) -> LoadCause:
    """Explains a missing library: SQLMesh imports the one of every gateway, selected or not.

    Args:
        extra: SQLMesh's own extra that brings the library, from its message.
        chain: The exceptions; a failed import shows whether the library is installed.
    """
    gateway = f"There is a gateway for `{name}`, whose Python library"
    refused = [
        link
        for link in chain
        if isinstance(link, ImportError) and not isinstance(link, ModuleNotFoundError)
    ]
    for link in refused:
        if found := _NO_SHARED_OBJECT.search(str(link)):
            return LoadCause(
                message=f"{gateway} is installed, and the system's `{found['file']}` that it needs "
                "is not.",
                hint=f"Install the system package that holds `{found['file']}` in an image of your "
                "own; `requirements` brings Python packages only.",
                reason_code="missing_module",
            )
    if refused:
        return LoadCause(
            message=f"{gateway} is installed, and cannot be imported: "
            f"{_PATH_OF_MODULE.sub('', str(refused[0]))}.",
            hint="Pin versions that fit in the file that the input `requirements` names.",
            reason_code="missing_module",
        )
    add = f"`sqlmesh[{extra}]`" if extra in _list_sqlmesh_extras() else f"the library of `{name}`"
    return LoadCause(
        message=f"{gateway} is not installed here.",
        hint=f"Add {add} to the file that the input `requirements` names.",
        reason_code="missing_module",
    )


def _list_sqlmesh_extras() -> frozenset[str]:
    return frozenset(metadata.metadata("sqlmesh").get_all("Provides-Extra") or ())


def _explain_missing_module(error: BaseException, name: str, root: Path) -> LoadCause:
    path, line = _find_innermost_position(error, root)
    hint: str | None
    who = (
        f"`{path}` {'imports' if _is_last_frame_in(error, root) else 'needs'}"
        if path
        else "It needs"
    )
    top = name.partition(".")[0]
    beside = _find_module_directory(top, root)
    if beside is not None and _is_searched(root / beside):
        hint = None
        message = f"{who} `{name}`, and there is no such module in `{beside}`."
    elif beside is not None:
        hint = f"The module is in `{beside}`: name that directory in the input `python-path`."
        message = f"{who} `{name}`, which is not on the search path."
    elif "." in name and _is_python_package_installed(top):
        hint = _PIN.format(top=top)
        message = f"{who} `{name}`, which the installed version of `{top}` does not have."
    else:
        hint = (
            "Add it to the file that the input `requirements` names; if it is a module of this "
            "repository, name its directory in the input `python-path`."
        )
        message = f"{who} `{name}`, which is not installed here."
    return LoadCause(path, line, message, hint, reason_code="missing_module")


_PIN = (
    "Pin the version of `{top}` that the project was written for in the file that the input "
    "`requirements` names, or correct the import."
)


def _explain_missing_name(error: BaseException, root: Path) -> LoadCause | None:
    found = _NO_NAME.search(str(error))
    path, line = _find_innermost_position(error, root)
    if found is None or path is None:
        return None
    top = found["module"].partition(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None)
    if file is None or Path(file).is_relative_to(root):
        return None  # the project's own module: Python's own message is enough
    return LoadCause(
        path,
        line,
        f"`{path}` imports `{found['name']}` from `{found['module']}`, and the installed version "
        f"of `{top}` has no such name.",
        _PIN.format(top=top),
        reason_code="missing_module",
    )


def _explain_process_exit(error: SystemExit, root: Path) -> LoadCause:
    path, line = _find_innermost_position(error, root)
    who = f"`{path}` ends" if path else "The project's code ends"
    exit_text = f": {error.code}" if isinstance(error.code, str) else ""
    call = "sys.exit()" if error.code is None or exit_text else f"sys.exit({error.code!r})"
    return LoadCause(
        path,
        line,
        f"{who} the process (`{call}`) while it is loaded{exit_text or '.'}",
        'Put what is a program of its own behind `if __name__ == "__main__":`, or raise an '
        "exception that says what is wrong.",
        reason_code="ends_the_process",
    )


def _explain_input_request(error: BaseException, root: Path) -> LoadCause | None:
    path, line = _find_innermost_position(error, root)
    if path is None:
        return None
    return LoadCause(
        path,
        line,
        f"`{path}` asks for input while it is loaded, and there is nobody to answer.",
        "Read the value from a variable instead, and pass that with the input `worker-env`.",
        reason_code="asks_for_input",
    )


def _is_out_of_processes(error: BaseException) -> bool:
    """Whether Python raised the error because the kernel starts no more processes or threads."""
    if isinstance(error, BlockingIOError):
        return error.errno == errno.EAGAIN and error.filename is None
    return isinstance(error, RuntimeError) and str(error) == "can't start new thread"


def _explain_process_limit(error: BaseException, root: Path) -> LoadCause:
    path, line = _find_innermost_position(error, root)
    return LoadCause(
        path,
        line,
        "The worker could start no more processes: all that it may have are in use"
        + (f" while `{path}` is loaded." if path else "."),
        "Look for code of the project that starts processes or threads while it is loaded; "
        "otherwise allow the container more of them.",
        reason_code="no_more_processes",
    )


def _explain_missing_variable(error: KeyError, root: Path) -> LoadCause | None:
    path, line = _find_innermost_position(error, root)
    name = error.args[0] if error.args else None
    if path is None or not isinstance(name, str):
        return None
    return LoadCause(
        path,
        line,
        f"`{path}` needs the variable `{name}`, which is not set here.",
        f"Pass `{name}` with the input `worker-env`, or give it a default.",
        reason_code="missing_variable",
    )


def _explain_missing_file(error: BaseException, name: str, root: Path) -> LoadCause | None:
    """Explains a missing file with a relative path, which depends on the working directory."""
    path, line = _find_innermost_position(error, root)
    if path is None or Path(name).is_absolute():
        return None
    here = _make_relative_path(str(Path.cwd()), root)
    return LoadCause(
        path,
        line,
        f"`{path}` opens `{name}`, and there is no such file below "
        f"{'the root of the checkout' if here in (None, '.') else f'`{here}`'}.",
        "Relative paths begin in the project's directory, or in the root of the checkout where "
        "several projects are loaded together. `Path(__file__).parent` works from anywhere.",
        reason_code="missing_file",
    )


def _explain_model_file(error: BaseException, root: Path) -> LoadCause | None:
    """Explains a model's file that Python cannot decode, or whose model another file declares."""
    text = str(error)
    named = _MODEL_FILE.search(text)
    path = _make_relative_path(named["file"], root) if named is not None else None
    if path is not None and (found := _NO_UTF_8.search(text)) is not None:
        return LoadCause(
            path,
            _find_line_that_is_no_utf_8(root / path),
            f"`{path}` is not a text in UTF-8: it has the byte {found['byte']}.",
            "Save the file as UTF-8, which is how SQLMesh reads it; "
            f"`iconv -f latin1 -t utf-8 {path}` converts a file in Latin-1.",
        )
    if (found := _DUPLICATE.search(text)) is not None:
        model = found["model"] or found["first"]
        files = _list_files_that_declare_model(model, root)
        if len(files) > 1:
            return LoadCause(
                path or files[-1],
                None,
                f"Two files declare the model `{model}`: "
                f"{' and '.join(f'`{file}`' for file in files[:2])}.",
                "Give one of them another name, or delete it.",
            )
    return None


def _find_line_that_is_no_utf_8(file: Path) -> int | None:
    """Finds the first line with a byte that is not UTF-8, counted from 1."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return content.count(b"\n", 0, error.start) + 1
    return None


def _list_files_that_declare_model(model: str, root: Path) -> list[str]:
    """Lists the SQL files below `root` whose MODEL block gives this name, sorted."""
    parts = r"[`\"]?\.[`\"]?".join(
        map(re.escape, model.replace("`", "").replace('"', "").split("."))
    )
    declared = re.compile(rf"\bname\s+[`\"]?{parts}[`\"]?\s*[,)]", re.IGNORECASE)
    found: list[str] = []
    for seen, (folder, folders, files) in enumerate(os.walk(root)):
        if seen > MAX_DIRECTORIES:
            break
        folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
        for file in (Path(folder, name) for name in files if name.endswith(".sql")):
            try:
                start = file.read_bytes()[:_MOST_BYTES_OF_MODEL_BLOCK].decode("utf-8", "replace")
            except OSError:
                continue
            if declared.search(start):
                found.append(file.relative_to(root).as_posix())
    return sorted(found)


def _find_innermost_position(error: BaseException, root: Path) -> tuple[str | None, int | None]:
    """Finds file and line of the innermost frame that runs code below `root`."""
    if isinstance(error, SyntaxError) and error.filename:
        path = _make_relative_path(error.filename, root)
        if path is not None:
            return path, error.lineno
    found: tuple[str | None, int | None] = None, None
    for frame, line in traceback.walk_tb(error.__traceback__):
        path = _make_relative_path(frame.f_code.co_filename, root)
        if path is not None:
            found = path, line
    return found


def _is_last_frame_in(error: BaseException, root: Path) -> bool:
    """Whether code below `root` made the import itself, and not a package that it imports."""
    files = [
        frame.f_code.co_filename
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith("<frozen importlib")
        and frame.f_globals.get("__name__") != "importlib"
    ]
    return bool(files) and _make_relative_path(files[-1], root) is not None


def _is_raised_in(error: BaseException, file: str) -> bool:
    step: TracebackType | None = error.__traceback__
    last = None
    while step is not None:
        last, step = step.tb_frame.f_code.co_filename, step.tb_next
    # Python's own modules may be frozen, and then have another file name.
    return last == file or last == f"<frozen {Path(file).stem}>"


def _make_relative_path(file: str, root: Path) -> str | None:
    path = Path(file)
    for top in (root, root.resolve()):
        if path.is_absolute() and path.is_relative_to(top):
            return path.relative_to(top).as_posix()
    return None


def _is_python_package_installed(name: str) -> bool:
    try:
        return util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _find_module_directory(module: str, root: Path) -> str | None:
    """Finds the directory below `root` in which an import would find `module`, the nearest
    first.
    """
    level = [root]
    seen = 0
    while level:
        following: list[Path] = []
        for directory in level:
            if (directory / f"{module}.py").is_file() or _is_package(directory / module):
                return _make_relative_path(str(directory), root)
            seen += 1
            if seen > MAX_DIRECTORIES:
                return None
            following += _list_directories_below(directory)
        level = sorted(following)
    return None


def _is_package(directory: Path) -> bool:
    return directory.is_dir() and next(directory.rglob("*.py"), None) is not None


def _is_searched(directory: Path) -> bool:
    return any(Path(entry).resolve() == directory.resolve() for entry in sys.path if entry)


def _list_directories_below(directory: Path) -> list[Path]:
    try:
        return [
            Path(entry.path)
            for entry in os.scandir(directory)
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(_HIDDEN)
        ]
    except OSError:
        return []
