"""Referees for the tests: what other programs make of the text that the bot writes."""

from __future__ import annotations
