"""The labelled changes, fed through the review of the worker and the judge of the bot."""

from __future__ import annotations
