"""Readers outside of the project: from the policy itself, or from a file in dbt's form. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ci_bot.bot.policy.document import NO_ACCOUNT, ExposureEntry, PolicyFile, is_account_in_policy
from ci_bot.bot.policy.policy_file import (
    decode_policy_file,
    list_policy_problems,
    make_unfit_policy,
)
from ci_bot.protocol.review_inputs import ExposedModel
from ci_bot.protocol.rules import quote_name
from ci_bot.yaml_reader import UnfitYaml, read_plain_yaml

MOST_EXPOSURE_BYTES = 1024 * 1024
# A person reads the list of the reached ones, and each is compared with every changed column.
MOST_EXPOSURES = 2_000
_MOST_SHOWN = 5

ExposedColumns = tuple[str, ...] | None

# The items of `depends_on`, as dbt writes them. https://docs.getdbt.com/docs/build/exposures
_REF = re.compile(r"ref\(\s*(?:['\"][^'\"]+['\"]\s*,\s*)?['\"]([^'\"]+)['\"]\s*(?:,[^'\")]*)?\)")
_SOURCE = re.compile(r"source\(\s*['\"]([^'\"]+)['\"]\s*,\s*['\"]([^'\"]+)['\"]\s*\)")
_OTHER_NODE = re.compile(r"metric\(.*\)")


@dataclass(frozen=True)
class PolicyExposure:
    """A reader outside of the project.

    Attributes:
        accounts: people to ask on GitHub: logins and organization/team.
        contacts: people to ask elsewhere: addresses and names, as text.
        reads: the columns of each model (by its name in the policy), in lower case; None means all
            columns. An empty tuple means that it only reads which rows exist.
        path, line: its place in the file.
    """

    name: str
    accounts: tuple[str, ...] = ()
    contacts: tuple[str, ...] = ()
    reads: Mapping[str, ExposedColumns] = field(default_factory=dict)
    path: str = ""
    line: int = 0

    @property
    def source_position(self) -> str:
        return f"{self.path} line {self.line}"

    @property
    def owners(self) -> str:
        """The people to ask, in code marks."""
        named = [*(f"@{name}" for name in self.accounts), *self.contacts]
        return " and ".join(quote_name(name) for name in named)


def list_exposures_in_policy_entries(files: Sequence[PolicyFile]) -> list[PolicyExposure]:
    """Lists the exposures that the policy itself names."""
    return [
        PolicyExposure(
            name=entry.name or "",
            accounts=tuple(filter(is_account_in_policy, entry.owner or ())),
            contacts=tuple(name for name in entry.owner or () if not is_account_in_policy(name)),
            reads={
                model: _lower_exposed_columns(columns)
                for model, columns in (entry.reads or {}).items()
            },
            path=entry.path,
            line=entry.line,
        )
        for entry in list_exposure_entries(files)
        if entry.file is None
    ]


def list_exposure_entries(files: Sequence[PolicyFile]) -> list[ExposureEntry]:
    """Lists all entries, also those that name a file."""
    return list(chain.from_iterable(file.exposures for file in files))


def read_exposures_listed_by_policy(
    files: Sequence[PolicyFile], read: Callable[[Sequence[str]], Sequence[bytes | None]]
) -> tuple[PolicyExposure, ...]:
    """Reads the exposures in the files that the policies name; reads nothing if they name none.

    Args:
        read: Returns the content of each given path, None if there is no such file.

    Raises:
        UnfitPolicy: a file does not exist, or cannot be used.
    """
    entries = [entry for entry in list_exposure_entries(files) if entry.file is not None]
    if not entries:
        return ()
    found: list[PolicyExposure] = []
    contents = read([entry.file or "" for entry in entries])
    for entry, content in zip(entries, contents, strict=True):
        if content is None:
            fault = f"the repository has no file {quote_name(entry.file or '')}"
            raise make_unfit_policy(entry.path, [(entry.line, fault)])
        found += _read_exposure_file(content, entry.file or "", entry)
    if len(found) > MOST_EXPOSURES:
        fault = f"its files list {len(found):,} exposures, and {MOST_EXPOSURES:,} are the most"
        raise make_unfit_policy(entries[0].path, [(entries[0].line, fault)])
    return tuple(found)


def _list_exposure_texts(value: Any) -> Any:
    return [value] if isinstance(value, str) else [] if value is None else value


def _validate_exposure_text(text: str) -> str:
    plain = " ".join(text.split())
    if not plain or not plain.isprintable():
        raise ValueError("must hold printable characters")
    return plain


_Text = Annotated[str, Field(max_length=500), AfterValidator(_validate_exposure_text)]
_Texts = Annotated[list[_Text], Field(max_length=500), BeforeValidator(_list_exposure_texts)]


class _FilePart(BaseModel):
    """A mapping of dbt's, with more keys than those read here."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class _ListedOwner(_FilePart):
    name: _Text | None = None
    email: _Texts = []
    github: _Texts = []


class _ListedMeta(_FilePart):
    columns: Annotated[dict[_Text, list[_Text]], Field(max_length=500)] = {}


class _ListedConfig(_FilePart):
    meta: _ListedMeta = _ListedMeta()


class _ListedExposure(_FilePart):
    name: _Text
    label: _Text | None = None
    owner: _ListedOwner = _ListedOwner()
    depends_on: _Texts = []
    meta: _ListedMeta = _ListedMeta()
    config: _ListedConfig = _ListedConfig()


class _ExposureFile(_FilePart):
    exposures: list[_ListedExposure]


def _read_exposure_file(
    content: bytes, path: str, entry: ExposureEntry
) -> Iterator[PolicyExposure]:
    text = decode_policy_file(content, path, at_most=MOST_EXPOSURE_BYTES)
    try:
        lines = read_plain_yaml(text)
    except UnfitYaml as error:
        raise make_unfit_policy(path, [(error.line, error.message)]) from error
    if not isinstance(lines.data, dict):
        raise make_unfit_policy(path, [(1, "it must hold `exposures:`, as dbt's files do")])
    try:
        found = _ExposureFile.model_validate(lines.data)
    except ValidationError as error:
        raise make_unfit_policy(path, list_policy_problems(error, lines)) from error
    for position, item in enumerate(found.exposures):
        line = lines.find_line_of_part(("exposures", position))
        yield _make_listed_policy_exposure(item, path, line, entry)


def _make_listed_policy_exposure(
    item: _ListedExposure, path: str, line: int, entry: ExposureEntry
) -> PolicyExposure:
    wrong = [name for name in item.owner.github if not is_account_in_policy(name)]
    if wrong:
        fault = f"{quote_name(wrong[0])} {NO_ACCOUNT}"
        raise make_unfit_policy(path, [(line, fault)])
    accounts = tuple(name.removeprefix("@") for name in item.owner.github)
    owners = () if accounts else tuple(entry.owner or ())
    name = item.owner.name
    own = () if accounts else (*((name,) if name else ()), *item.owner.email)
    columns = {**item.meta.columns, **item.config.meta.columns}
    reads: dict[str, ExposedColumns] = {}
    for text in item.depends_on:
        model = read_dependency_of_exposure(text)
        if model is not None:
            reads[model] = _lower_exposed_columns(columns.get(text, columns.get(model)))
    return PolicyExposure(
        name=item.label or item.name,
        accounts=(*accounts, *filter(is_account_in_policy, owners)),
        contacts=(*own, *(name for name in owners if not is_account_in_policy(name))),
        reads=reads,
        path=path,
        line=line,
    )


def read_dependency_of_exposure(text: str) -> str | None:
    """Returns the name of the model or table in an item of `depends_on`; None if it has none.

    `ref('orders')` is a model whose name ends with `orders`, `source('raw', 'orders')` one whose
    name ends with `raw.orders`, and any other text is a name as it is.
    """
    plain = text.strip().removeprefix("{{").removesuffix("}}").strip()
    if match := _REF.fullmatch(plain):
        return match[1]
    if match := _SOURCE.fullmatch(plain):
        return f"{match[1]}.{match[2]}"
    return None if _OTHER_NODE.fullmatch(plain) else plain


def _lower_exposed_columns(columns: Sequence[str] | None) -> ExposedColumns:
    return None if columns is None else tuple(dict.fromkeys(name.lower() for name in columns))


def list_names_exposed_by_policy(exposures: Sequence[PolicyExposure]) -> list[str]:
    """Lists what the worker is asked about, each name once."""
    return list(dict.fromkeys(name for exposure in exposures for name in exposure.reads))


def describe_stale_policy_exposures(
    exposures: Sequence[PolicyExposure], answers: Sequence[ExposedModel]
) -> list[str]:
    """Names models and columns that the project does not have, as a note with the fix."""
    known = {answer.name: answer for answer in answers}
    faults: list[str] = []
    for exposure in exposures:
        for name, columns in exposure.reads.items():
            answer = known.get(name)
            if answer is not None and (why := _find_mistake(answer, columns)):
                faults.append(f"{quote_name(exposure.name)} ({exposure.source_position}) {why}")
    if not faults:
        return []
    shown = "; ".join(faults[:_MOST_SHOWN])
    rest = f"; and {len(faults) - _MOST_SHOWN:,} more" if len(faults) > _MOST_SHOWN else ""
    return [f"Exposures to bring up to date: {shown}{rest}."]


def _find_mistake(answer: ExposedModel, columns: ExposedColumns) -> str | None:
    if answer.model is None:
        near = " or ".join(quote_name(name) for name in answer.near)
        if answer.several:
            return f"reads {quote_name(answer.name)}, which may be {near}: write its schema"
        hint = f" (did you mean {near}?)" if near else ""
        return f"reads {quote_name(answer.name)}, which is no model of the project{hint}"
    missing = [c for c in columns or () if answer.columns is not None and c not in answer.columns]
    if missing:
        names = ", ".join(quote_name(name) for name in missing[:_MOST_SHOWN])
        return f"reads {names}, which {quote_name(answer.model)} does not have"
    return None
