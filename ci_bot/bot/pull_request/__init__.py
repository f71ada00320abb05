"""What `ci-bot run` does on a pull request: who may, what is commented, what work is started."""

from __future__ import annotations
