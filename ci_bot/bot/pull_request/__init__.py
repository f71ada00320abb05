"""The activities on a pull request: what `ci-bot run` does with GitHub around it."""

from __future__ import annotations
