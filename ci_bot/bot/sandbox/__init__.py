"""The cage: everything that starts, watches and ends the process which runs the PR's code.

What it keeps: the token and the runner's files stay out of reach (`environment`, `workspace`,
another uid, no new privileges), nothing outlives the run (`family`, `supervisor`), and only an
answer that is small, well-formed and about what was asked is believed (`answer`).
"""

from __future__ import annotations
