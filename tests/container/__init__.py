"""The built image, run by a real container engine the way GitHub's runner runs it."""

from __future__ import annotations
