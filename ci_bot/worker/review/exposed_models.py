"""Which models the names of the policy's exposures mean, by the project on both sides."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ci_bot.protocol.review_inputs import ExposedModel
from ci_bot.worker.rules import RuleInputs
from ci_bot.worker.sql import list_known_types, plain_name

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

_MOST_NEAR = 3
# Models of one schema are alike by that alone.
_ALIKE = 0.8


def find_exposed_models(asked: Sequence[str], inputs: RuleInputs) -> list[ExposedModel]:
    """The model of each name: the one that is called so, or the only one that ends in it.

    Args:
        asked: Names as people write them: with or without the catalog, or the last part alone.
    """
    if not asked:
        return []
    ends: dict[str, list[str]] = defaultdict(list)
    known = {plain_name(fqn): fqn for fqn in (*inputs.before, *inputs.after)}
    for name in known:
        ends[name.rpartition(".")[2]].append(name)
    shown = sorted({inputs.names.short_name(fqn) for fqn in known.values()})
    return [_find_model(name, known, ends, shown, inputs) for name in asked]


def _find_model(
    asked: str,
    known: Mapping[str, str],
    ends: Mapping[str, Sequence[str]],
    shown: Sequence[str],
    inputs: RuleInputs,
) -> ExposedModel:
    plain = plain_name(asked)
    alike = ends.get(plain.rpartition(".")[2], ())
    found = [name for name in alike if f".{name}".endswith(f".{plain}")]
    called_so = [
        name for name in found if plain_name(inputs.names.short_name(known[name])) == plain
    ]
    names = [known[name] for name in called_so or found]
    if len(names) == 1:
        return ExposedModel(
            name=asked,
            model=inputs.names.short_name(names[0]),
            columns=_list_columns(names[0], inputs),
        )
    several = sorted(inputs.names.short_name(fqn) for fqn in names)[:_MOST_NEAR]
    near = several or difflib.get_close_matches(asked, shown, n=_MOST_NEAR, cutoff=_ALIKE)
    return ExposedModel(name=asked, model=None, several=bool(several), near=near)


def _list_columns(fqn: str, inputs: RuleInputs) -> list[str] | None:
    """The columns of both sides of a changed model: those of others would have to be worked out."""
    if fqn not in inputs.direct | inputs.indirect | inputs.removed:
        return None
    sides = [_columns_of(models.get(fqn)) for models in (inputs.before, inputs.after)]
    if None in sides:
        return None
    return list(dict.fromkeys(name for side in sides for name in side or ()))


def _columns_of(model: Model | None) -> Sequence[str] | None:
    types = list_known_types(model)
    return None if types is None else tuple(types)
