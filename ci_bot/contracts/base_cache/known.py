"""What a run on the default branch found out about files of models, for reviews that come later.

It is data and no code: digests, names and a flag. What a file defines is not in it. A review takes
that from prod's state, where the file and prod's record are those that are meant here.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ci_bot.contracts.base import SCHEMA_VERSION, Contract, Count, FilePath, Name

# A project with more models than this has the others loaded as ever.
MOST_FILES = 20_000
_MOST_READ = 10_000
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="A SHA-256.")]


class KnownFile(Contract):
    """A file that defines one model, and that model is the one of prod's record."""

    path: FilePath
    content: Digest = Field(description="Of the bytes of the file.")
    model: Name = Field(description="The fully qualified name.")
    record: Digest = Field(
        description="Of all else that loading takes part of, and prod's record of the model."
    )
    depends_on: list[Name] = Field(max_length=_MOST_READ)
    lists_columns: bool = Field(description="The query shows all its columns by their names.")


class BaseCache(Contract):
    """The files that need not be read as SQL again while they and all around them are the same."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["remember"] = "remember"
    files: list[KnownFile] = Field(max_length=MOST_FILES)
    models: Count = Field(description="How many models the project has.")
