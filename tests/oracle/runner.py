"""How the Actions runner reads a step: a port of its two parsers, used as a referee.

Ported by reading actions/runner at 258d6c857db3 (2026-08-17): `ActionCommand.cs`,
`ActionCommandManager.cs`, `OutputManager.cs`, `ProcessInvoker.cs` (how a stream becomes lines) and
`FileCommandManager.cs`. Quirks are kept, because the quirks are what escapes have to survive:

- lines end at CR, LF or CRLF (`StreamReader.ReadLine`);
- `::` counts at the start of a line after white space, `##[` anywhere in it;
- properties are trimmed as a whole, split at `,`, and at `=` with empty parts thrown away;
- `StartsWith` and `IndexOf` without a comparison type are linguistic in .NET, where ICU skips
  characters of no width. `Reading.LINGUISTIC` models that, `Reading.ORDINAL` the invariant mode.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from enum import Enum

# set-env and add-path are refused unless a workflow allows them; recognising them is bad enough.
KNOWN_COMMANDS = frozenset(
    (
        *("stop-commands", "set-output", "save-state", "set-env", "add-path", "add-mask"),
        *("add-matcher", "remove-matcher", "debug", "notice", "warning", "error", "group"),
        *("endgroup", "echo"),
    )
)
# char.IsWhiteSpace of .NET: the separators and TAB to CR, NEL and NBSP.
_SPACE = "".join(
    chr(point)
    for point in range(0x3001)
    if unicodedata.category(chr(point)) in {"Zs", "Zl", "Zp"} or 9 <= point <= 13 or point == 0x85
)


class Reading(Enum):
    """How .NET compares strings."""

    ORDINAL = "ordinal"
    LINGUISTIC = "linguistic"


@dataclass(frozen=True)
class Command:
    """A command that the runner recognised."""

    name: str
    properties: dict[str, str]
    data: str


@dataclass
class RunnerLog:
    """Reads the output of a step, as a whole, and keeps what the runner would have done."""

    reading: Reading = Reading.ORDINAL
    commands: list[Command] = field(default_factory=list)
    output: list[str] = field(default_factory=list)
    masks: list[str] = field(default_factory=list)
    stop_token: str | None = None

    def read(self, text: str) -> RunnerLog:
        """Take the whole output of a step."""
        for line in lines_of(text):
            self._line(line)
        return self

    def named(self, *names: str) -> list[Command]:
        """The commands with one of these names, in order."""
        return [command for command in self.commands if command.name.lower() in names]

    def _line(self, line: str) -> None:
        command = self._parse(line)
        if command is None:
            self.output.append(line)
            return
        if self.stop_token is not None:
            if command.name.lower() == self.stop_token.lower():
                self.stop_token = None
            else:
                self.output.append(line)
            return
        self.commands.append(command)
        if command.name.lower() == "stop-commands":
            if not command.data or command.data.lower() in {*KNOWN_COMMANDS, "pause-logging"}:
                raise ValueError("the runner fails the step: bad stop token")
            self.stop_token = command.data
        elif command.name.lower() == "add-mask":
            self.masks += [command.data, *re.split(r"[\r\n]+", command.data)]

    def _parse(self, line: str) -> Command | None:
        known = KNOWN_COMMANDS | ({self.stop_token.lower()} if self.stop_token else set())
        return parse_v2(line, known, self.reading) or parse_v1(line, known, self.reading)


def lines_of(text: str) -> list[str]:
    """The lines that `StreamReader.ReadLine` gives; a last empty piece is no line."""
    lines = re.split(r"\r\n|\r|\n", text)
    return lines[:-1] if lines and lines[-1] == "" else lines


def parse_v2(line: str, known: set[str] | frozenset[str], reading: Reading) -> Command | None:
    """`::name key=value,key=value::data`."""
    message = line.lstrip(_SPACE)
    if not message or _find(message, "::", 0, reading, only_at_start=True) < 0:
        return None
    end = _find(message, "::", 2, reading)
    if end < 0:
        return None
    info = message[2:end]
    name, space, rest = info.partition(" ")
    if name.lower() not in known:
        return None
    properties = _properties(rest.strip(_SPACE), ",", _V2_PROPERTY) if space and name else {}
    return Command(name, properties, _unescape(message[end + 2 :], _V2_DATA))


def parse_v1(line: str, known: set[str] | frozenset[str], reading: Reading) -> Command | None:
    """`##[name key=value;key=value]data`, anywhere in a line."""
    start = _find(line, "##[", 0, reading)
    if start < 0:
        return None
    end = line.find("]", start)
    if end < 0:
        return None
    name, space, rest = line[start + 3 : end].partition(" ")
    if name.lower() not in known:
        return None
    properties = _properties(rest, ";", _V1) if space and name else {}
    return Command(name, properties, _unescape(line[end + 1 :], _V1))


_V2_DATA = (("%0D", "\r"), ("%0A", "\n"), ("%25", "%"))
_V2_PROPERTY = (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))
_V1 = (("%3B", ";"), ("%0D", "\r"), ("%0A", "\n"), ("%5D", "]"), ("%25", "%"))


def _unescape(text: str, table: tuple[tuple[str, str], ...]) -> str:
    for written, meant in table:
        text = text.replace(written, meant)
    return text


def _properties(text: str, separator: str, table: tuple[tuple[str, str], ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in filter(None, text.split(separator)):
        # Split('=', 2, RemoveEmptyEntries): empty parts before, between and after do not count.
        key, _, value = pair.lstrip("=").partition("=")
        value = value.lstrip("=")
        if key and value:
            found[key.lower()] = _unescape(value, table)
    return found


def _ignorable(char: str) -> bool:
    """Whether ICU's collation gives `char` no weight (wider than it is, to be safe)."""
    return char not in _SPACE and (
        unicodedata.category(char) in {"Cc", "Cf"}
        or char == "\u034f"
        or "\ufe00" <= char <= "\ufe0f"
    )


def _find(
    text: str, needle: str, start: int, reading: Reading, *, only_at_start: bool = False
) -> int:
    if reading is Reading.ORDINAL:
        if only_at_start:
            return 0 if text.startswith(needle) else -1
        return text.find(needle, start)
    for begin in range(start, len(text)):
        if _ignorable(text[begin]):
            continue
        position, matched = begin, 0
        while position < len(text) and matched < len(needle):
            if text[position] == needle[matched]:
                matched += 1
            elif not _ignorable(text[position]):
                break
            position += 1
        if matched == len(needle):
            return begin
        if only_at_start:
            return -1
    return -1


def read_file_command(text: str) -> list[tuple[str, str]]:
    """What a file behind `GITHUB_OUTPUT`, `GITHUB_ENV` or `GITHUB_STATE` sets, on Linux.

    Raises:
        ValueError: The runner would fail the step.
    """
    pairs: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        line, position, _ = _next_line(text, position)
        if not line:
            continue
        equals, heredoc = line.find("="), line.find("<<")
        if equals >= 0 and (heredoc < 0 or equals < heredoc):
            name, _, value = line.partition("=")
        elif heredoc >= 0:
            name, _, delimiter = line.partition("<<")
            if not name or not delimiter:
                raise ValueError(f"bad heredoc line {line!r}")
            start = end = position
            while True:
                if position >= len(text):
                    raise ValueError(f"no delimiter {delimiter!r}")
                line, position, ended = _next_line(text, position)
                if line == delimiter:
                    break
                if not ended:
                    raise ValueError("the last line has no line break")
                end = position - 1
            value = text[start:end] if end > start else ""
        else:
            raise ValueError(f"bad line {line!r}")
        pairs.append((name, value))
    return pairs


def _next_line(text: str, position: int) -> tuple[str, int, bool]:
    newline = text.find("\n", position)
    if newline < 0:
        return text[position:], len(text), False
    return text[position:newline], newline + 1, True
