"""Stand-ins for GitHub: a stateful REST server, a scripted fault server, and event payloads.

`emulate` (npm) keeps the state; a small front of ours in this package serves what it lacks, answers
the way GitHub does where it differs, records the traffic, and holds both directions against
GitHub's own OpenAPI description. Start with `fixtures.py`; `README.md` here says how to use it in a
test.
"""

from __future__ import annotations
