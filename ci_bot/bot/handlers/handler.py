"""What handles an activity: one handler for each type, found in one table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Generic, TypeVar

from ci_bot.bot.actions import ActionSettings, activities
from ci_bot.bot.github import GitHub, require_github
from ci_bot.bot.handlers.publisher import HandlerPublisher
from ci_bot.bot.worker_client import WorkerClient
from ci_bot.errors import BotError

AnActivity = TypeVar("AnActivity", bound=activities.Activity)


@dataclass(frozen=True)
class HandlerContext:
    """What a handler works with.

    `worker` is None for a handler that needs none. `optional_github` is None without a token.
    """

    settings: ActionSettings
    publisher: HandlerPublisher
    optional_github: GitHub | None
    worker: WorkerClient | None = None

    @property
    def client(self) -> WorkerClient:
        """The worker's client, for handlers that say that they need one."""
        if self.worker is None:
            raise AssertionError("this handler says that it needs no worker")
        return self.worker

    @property
    def github(self) -> GitHub:
        """GitHub, for handlers that can do nothing without it.

        Raises:
            BadInput: there is no token.
        """
        return require_github(self.optional_github)


class Handler(ABC, Generic[AnActivity]):
    """Does what one type of activity asks for."""

    # False: no workspace is made, and nothing of a checkout is read.
    needs_worker: ClassVar[bool] = True

    @abstractmethod
    def run(self, activity: AnActivity, context: HandlerContext) -> int:
        """Does it, and says so where people look; returns the exit code."""

    def report_failure(self, error: BotError, activity: AnActivity, context: HandlerContext) -> int:
        """Says why nothing came of it, where people look; returns the exit code.

        Raises:
            BotError: there is no pull request, or no report can be written about the reason.
        """
        raise error


# Modules are imported when their handler is found: a comment's command loads no review.
_HANDLERS: Mapping[type[activities.Activity], tuple[str, str]] = {
    activities.Review: ("review", "ReviewHandler"),
    activities.Apply: ("apply", "ApplyHandler"),
    activities.Estimate: ("estimate", "EstimateHandler"),
    activities.Accept: ("accept_command", "AcceptHandler"),
    activities.Restate: ("restate_command", "RestateHandler"),
    activities.Cleanup: ("cleanup", "CleanupHandler"),
    activities.Sweep: ("sweep", "SweepHandler"),
    activities.Doctor: ("doctor", "DoctorHandler"),
    activities.Drift: ("drift", "DriftHandler"),
    activities.CommentCommand: ("comment_commands", "CommandHandler"),
    activities.PostForkReport: ("fork_report", "ForkReportHandler"),
}


def find_handler(activity: activities.Activity) -> Handler[Any]:
    """The handler of an activity's type. There is none for `Skip`, which asks for nothing."""
    module, name = _HANDLERS[type(activity)]
    handler: Handler[Any] = getattr(import_module(f"ci_bot.bot.handlers.{module}"), name)()
    return handler
