"""The handlers of activities: one for each type, found in one table."""

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
    """The settings and services with which a handler works.

    `worker` is None for a handler that needs no worker. `optional_github` is None without a token.
    """

    settings: ActionSettings
    publisher: HandlerPublisher
    optional_github: GitHub | None
    worker: WorkerClient | None = None

    @property
    def client(self) -> WorkerClient:
        """The worker's client, for handlers with `needs_worker`."""
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
    """The base of all handlers: it does what one type of activity asks for."""

    # If it is False, no workspace is made, and nothing of a checkout is read.
    needs_worker: ClassVar[bool] = True

    @abstractmethod
    def run(self, activity: AnActivity, context: HandlerContext) -> int:
        """Does it, and reports the result where people see it; returns the exit code."""

    def report_failure(self, error: BotError, activity: AnActivity, context: HandlerContext) -> int:
        """Reports where people see it why it was not done; returns the exit code.

        Raises:
            BotError: there is no pull request, or no report about the reason can be written.
        """
        raise error


# A module is imported when its handler is needed: the command of a comment loads no review.
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
    """Returns the handler for an activity's type; there is none for `NothingToDo`."""
    module, name = _HANDLERS[type(activity)]
    handler: Handler[Any] = getattr(import_module(f"ci_bot.bot.handlers.{module}"), name)()
    return handler
