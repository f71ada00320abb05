"""Which files prove nothing about the models in them. Pure.

CODEOWNERS, `paths` of a policy and comments speak of files, and a pull request chooses in which
file a model stands: it can take a model of another team's to a file of its author's. So a file
counts for a model that is not new only where the base branch's version is of that model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

_SQL_NAME = re.compile(r"\bname\s+([^\s,()]+)", re.IGNORECASE)
_PYTHON_NAME = re.compile(r"@model\(\s*(?:name\s*=\s*)?[\"']([^\"'\n]+)[\"']")
_QUOTES = str.maketrans("", "", "\"`'")


@dataclass(frozen=True)
class ModelFiles:
    """What is known of the files of a review.

    Attributes:
        new: files that the base branch does not have, and that hold no new model.
        foreign: models that are not new, with a file whose old version is not theirs.
    """

    new: frozenset[str] = frozenset()
    foreign: frozenset[tuple[str, str]] = frozenset()

    def prove(self, model: str | None, path: str | None) -> bool:
        """Whether a file says anything about a finding on a model, or on no model."""
        if path is None or path in self.new:
            return False
        return model is None or (model, path) not in self.foreign

    @classmethod
    def of(
        cls, models: Mapping[str, str], before: Mapping[str, str | None], *, new: frozenset[str]
    ) -> ModelFiles:
        """
        Args:
            models: the file of each model that is not new.
            before: the old text of each file that differs; None where it is not to be had.
            new: as above.
        """
        foreign = {
            (model, path)
            for model, path in models.items()
            if path in before and not names_model(before[path], path, model)
        }
        return cls(new, frozenset(foreign))


def names_model(text: str | None, path: str, model: str) -> bool:
    """Whether a file names a model as its own, in letters.

    A name that is made when the file is loaded (a macro, a blueprint) is not seen. Without any, the
    file's own path names the model, as SQLMesh infers it.
    """
    if text is None:
        return False
    wanted = model.translate(_QUOTES).lower().split(".")
    if path.endswith(".py"):
        found = _PYTHON_NAME.findall(text)
    else:
        found = _SQL_NAME.findall(text.partition(";")[0])
    if not found:
        return list(PurePosixPath(path).with_suffix("").parts[-len(wanted) :]) == wanted
    return any(name.translate(_QUOTES).lower().split(".") == wanted for name in found)
