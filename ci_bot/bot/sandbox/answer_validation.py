"""Which answers of the worker are trusted.

The worker runs the pull request's code, so its answer may be anything. The bot refuses it as a
whole if it is too large, is not strict JSON, is none of our documents, or is about something that
was not asked. Nothing of a refused answer is shown, because the attacker wrote its text.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from ci_bot.protocol.apply_report import ApplyDocument, EstimateDocument
from ci_bot.protocol.base import Failure
from ci_bot.protocol.cleanup_report import CleanupDocument, EnvironmentList, SweepDocument
from ci_bot.protocol.cost import ExposuresDocument, LearnDocument
from ci_bot.protocol.messages import (
    ANSWER,
    AcceptAnswer,
    AnyAnswer,
    AnyRequest,
    ApplyRequest,
    CleanupRequest,
    DoctorDocument,
    EstimateRequest,
    FailedAnswer,
    RestateAnswer,
    ReviewRequest,
    SweepRequest,
)
from ci_bot.protocol.plan_identity import find_full_plan_id
from ci_bot.protocol.reasons import normalize_failure_code, normalize_result_code
from ci_bot.protocol.review_inputs import (
    BaseCache,
    BaseTests,
    KnownFile,
    SameAnswer,
    ScanFacts,
    ScopesAnswer,
)
from ci_bot.protocol.review_report import ReviewFacts

_TOO_DEEP = "it is nested too deeply"

_OTHER_ENVIRONMENT = "it is about another environment"

_TOO_MANY_MEMBERS = "it has too many members"

WorkerRequest = AnyRequest
WorkerAnswer = AnyAnswer

AnswerWithReason = ReviewFacts | ApplyDocument | CleanupDocument | FailedAnswer

_WITHOUT_FAILURE = (
    ScanFacts
    | BaseTests
    | ScopesAnswer
    | SameAnswer
    | AcceptAnswer
    | RestateAnswer
    | EnvironmentList
    | EstimateDocument
    | DoctorDocument
    | LearnDocument
    | ExposuresDocument
    | BaseCache
)

# For memory's sake: a list of a million empty records is small as text and huge as objects.
MOST_OBJECTS = 250_000
MOST_COMMAS = 4_000_000
_LONGEST_NUMBER = 40


class SandboxedAnswerRefusedError(Exception):
    """Why an answer is not trusted, as the end of a sentence."""


def read_answer_of_sandboxed_worker(raw: bytes, request: WorkerRequest) -> WorkerAnswer:
    """Reads the worker's answer to `request`.

    Raises:
        SandboxedAnswerRefusedError: No part of it may be used.
    """
    check_json_of_sandboxed_worker(raw)
    try:
        answer = ANSWER.validate_json(raw)
    except ValidationError as error:
        raise SandboxedAnswerRefusedError(
            f"it does not fit the contract ({_describe_first_error_of_sandboxed_answer(error)})"
        ) from None
    except RecursionError:
        raise SandboxedAnswerRefusedError(_TOO_DEEP) from None
    check_subject_of_sandboxed_answer(answer, request)
    return normalize_reasons_of_sandboxed_worker(answer)


def normalize_reasons_of_sandboxed_worker(answer: WorkerAnswer) -> WorkerAnswer:
    """Returns `answer` without reason codes that are not in the contract."""
    if isinstance(answer, SweepDocument):
        cleanups = [
            _keep_known_reason_of_sandboxed_worker(document) for document in answer.cleanups
        ]
        return answer.model_copy(update={"cleanups": cleanups})
    if isinstance(answer, _WITHOUT_FAILURE):
        return answer
    return _keep_known_reason_of_sandboxed_worker(answer)


def _keep_known_reason_of_sandboxed_worker(document: AnswerWithReason) -> AnswerWithReason:
    changes: dict[str, object] = {}
    if document.failure is not None:
        code = normalize_failure_code(document.failure.reason_code)
        changes["failure"] = document.failure.model_copy(update={"reason_code": code})
    if isinstance(document, ReviewFacts) and document.refused_wish is not None:
        code = normalize_failure_code(document.refused_wish.reason_code)
        changes["refused_wish"] = document.refused_wish.model_copy(update={"reason_code": code})
    if isinstance(document, ApplyDocument):
        changes["reason_code"] = normalize_result_code(document.reason_code)
    return document.model_copy(update=changes)


def check_json_of_sandboxed_worker(raw: bytes) -> None:
    """Refuses what JSON readers disagree on: repeated keys, NaN, endless nesting and numbers."""
    if raw.count(b",") > MOST_COMMAS:
        raise SandboxedAnswerRefusedError(_TOO_MANY_MEMBERS)
    objects = 0

    def on_object(pairs: list[tuple[str, Any]]) -> None:
        nonlocal objects
        objects += 1
        if objects > MOST_OBJECTS:
            raise SandboxedAnswerRefusedError(_TOO_MANY_MEMBERS)
        if len({key for key, _ in pairs}) != len(pairs):
            raise SandboxedAnswerRefusedError("it has a key twice")

    def on_number(text: str) -> None:
        if len(text) > _LONGEST_NUMBER:
            raise SandboxedAnswerRefusedError("it has a number without end")

    def on_constant(_name: str) -> None:
        raise SandboxedAnswerRefusedError("it has a number that is none")

    try:
        json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=on_object,
            parse_float=on_number,
            parse_int=on_number,
            parse_constant=on_constant,
        )
    except RecursionError:
        raise SandboxedAnswerRefusedError(_TOO_DEEP) from None
    except (UnicodeDecodeError, ValueError):
        raise SandboxedAnswerRefusedError("it is not JSON") from None


def check_subject_of_sandboxed_answer(answer: WorkerAnswer, request: WorkerRequest) -> None:
    """Refuses an answer that is about something else than the request."""
    if isinstance(answer, FailedAnswer):
        _check_failure_of_sandboxed_worker(answer.failure)
        return
    if answer.activity != request.activity:
        raise SandboxedAnswerRefusedError(
            f"it is about a {answer.activity}, not a {request.activity}"
        )
    if isinstance(answer, SweepDocument) and isinstance(request, SweepRequest):
        _check_sweep_of_sandboxed_worker(answer, request)
        return
    if (
        isinstance(request, ReviewRequest | ApplyRequest | CleanupRequest | EstimateRequest)
        and isinstance(answer, ReviewFacts | ApplyDocument | CleanupDocument | EstimateDocument)
        and answer.environment != request.environment
    ):
        raise SandboxedAnswerRefusedError(_OTHER_ENVIRONMENT)
    if isinstance(answer, SweepDocument | _WITHOUT_FAILURE):
        return  # it holds nothing else that could be checked
    if isinstance(answer, ReviewFacts) and isinstance(request, ReviewRequest):
        _check_review_of_sandboxed_worker(answer, request)
        if answer.refused_wish is not None:
            _check_failure_of_sandboxed_worker(answer.refused_wish)
    if isinstance(answer, ApplyDocument) and isinstance(request, ApplyRequest):
        if answer.result == ("applied" if request.probe else "probed"):
            raise SandboxedAnswerRefusedError(f"it says {answer.result}, which was not asked for")
        done = answer.result in ("applied", "probed", "nothing_to_apply")
        if done and request.plan_id and not _is_sandboxed_answer_of(answer, request.plan_id):
            raise SandboxedAnswerRefusedError("it is about another plan")
    if answer.failure is not None:
        _check_failure_of_sandboxed_worker(answer.failure)


def _check_review_of_sandboxed_worker(answer: ReviewFacts, request: ReviewRequest) -> None:
    if answer.identity is not None and answer.identity.environment != request.environment:
        raise SandboxedAnswerRefusedError("its plan is for another environment")
    if request.baseline == "base-branch" and answer.baseline != "base-branch":
        raise SandboxedAnswerRefusedError("it compares with another baseline")
    if answer.baseline == "empty" and answer.prod_not_found is None:
        raise SandboxedAnswerRefusedError("it found no prod and does not say where")
    if not _is_sandboxed_answer_of_wish(answer, request):
        raise SandboxedAnswerRefusedError("it is about another restatement")


def _is_sandboxed_answer_of_wish(answer: ReviewFacts, request: ReviewRequest) -> bool:
    """Whether the requested restatement is there as its comment asked for it, or was refused."""
    wish = request.wish
    if wish is None or answer.refused_wish is not None or answer.failure is not None:
        return answer.refused_wish is None or wish is not None
    own = [item.recorded for item in answer.prod_restatements[-1:]]
    wanted = (wish.by, wish.at, wish.reason, wish.comment_id)
    return [(item.by, item.at, item.reason, item.comment_id) for item in own] == [wanted]


def _is_sandboxed_answer_of(answer: ApplyDocument, requested_id: str) -> bool:
    if answer.plan_id is None:
        # If prod already is what the project would make of it, there is no plan any more. Then the
        # worker repeats the requested id, and does not know the whole one if it was shortened.
        return answer.result == "nothing_to_apply" and find_full_plan_id(requested_id, None) is None
    return answer.plan_id.startswith(requested_id.lower())


def _check_sweep_of_sandboxed_worker(answer: SweepDocument, request: SweepRequest) -> None:
    targets = {target.environment for target in request.targets}
    answered = [document.environment for document in answer.cleanups]
    if len(set(answered)) != len(answered) or not targets.issuperset(answered):
        raise SandboxedAnswerRefusedError(_OTHER_ENVIRONMENT)
    for document in answer.cleanups:
        if document.failure is not None:
            _check_failure_of_sandboxed_worker(document.failure)


def _check_failure_of_sandboxed_worker(failure: Failure) -> None:
    """Refuses exit codes that the worker cannot have: only the bot reports those of signals."""
    if failure.exit_code not in (1, 2, 3, 4, 130, 143):
        raise SandboxedAnswerRefusedError("its exit code is not one of ours")


def _describe_first_error_of_sandboxed_answer(error: ValidationError) -> str:
    """Says where and how, without the value; places are our schema's fields, or `?`."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    known = [
        str(part) if isinstance(part, int) or _is_field_of_sandboxed_answer_ours(part) else "?"
        for part in first["loc"]
    ]
    return f"{'.'.join(known) or 'the document'}: {first['type']}"


_FIELDS = frozenset(
    name
    for model in (
        ReviewFacts,
        BaseTests,
        ScanFacts,
        ScopesAnswer,
        SameAnswer,
        AcceptAnswer,
        RestateAnswer,
        ApplyDocument,
        CleanupDocument,
        EnvironmentList,
        SweepDocument,
        DoctorDocument,
        LearnDocument,
        ExposuresDocument,
        BaseCache,
        KnownFile,
        FailedAnswer,
        Failure,
    )
    for name in model.model_fields
) | {
    "review",
    "base_tests",
    "scan",
    "scopes",
    "same",
    "apply",
    "cleanup",
    "list",
    "sweep",
    "doctor",
    "learn",
    "exposures",
    "remember",
    "failure",
}


def _is_field_of_sandboxed_answer_ours(part: str) -> bool:
    return part in _FIELDS
