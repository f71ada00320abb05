"""What the Actions runner is given: workflow commands, masks, outputs and the step summary."""

from __future__ import annotations
