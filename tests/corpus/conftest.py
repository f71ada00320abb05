"""The labelled changes are kept apart from this repository; without them there is nothing to score."""

from __future__ import annotations

from tests.corpus.runner import corpus_from_environment

collect_ignore = [] if corpus_from_environment() else ["test_corpus.py"]
