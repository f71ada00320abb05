"""What the statements in changed files do, by what literally stands there.

The plan's own statements are judged where the project was loaded, rendered and in full. That
judgement is worth nothing where code of the pull request ran beside it; this one was made before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ci_bot.worker.rules.files.raw.dialects import dialects_of
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import Observation
from ci_bot.worker.rules.place import line_of
from ci_bot.worker.rules.registry import on_written_statement
from ci_bot.worker.rules.statements import CODE, SETTING, STATEMENT, rule_of, subject_of
from ci_bot.worker.statements.judging import JudgedEffect
from ci_bot.worker.statements.raw import of_file


@on_written_statement(CODE, STATEMENT, SETTING)
def written(inputs: RuleInputs) -> Iterator[Observation]:
    """Statements that a change adds to a file, and that do something to others."""
    for path in inputs.changed_files or ():
        if not path.endswith((".sql", ".yaml", ".yml")) or inputs.in_project(path) is None:
            continue
        after = inputs.text_after(path)
        new = _blockers(inputs, path, after)
        if after is None or not new:
            continue
        old = Counter(_key(item) for item in _blockers(inputs, path, inputs.text_before(path)))
        for item in new:
            old[_key(item)] -= 1
            if old[_key(item)] < 0:
                words = item.statement.source.split()
                yield Observation(
                    rule_of(item),
                    f"In {item.statement.slot}, as it stands in the file: it {item.said}.",
                    "the statement is gone, or a person has run it once instead",
                    severity="blocker",
                    model_name=item.statement.model,
                    path=path,
                    line=line_of(after, (" ".join(words[:3]), " ".join(words[:2]), *words[:1])),
                    subject=(*subject_of(item), item.statement.source),
                )


def _blockers(inputs: RuleInputs, path: str, text: str | None) -> list[JudgedEffect]:
    if text is None:
        return []
    reading = of_file(path, text, dialects_of(inputs, path)[0])
    return [item for item in reading.judged if item.severity == "blocker"]


def _key(item: JudgedEffect) -> tuple[str, ...]:
    return *subject_of(item), item.statement.source
