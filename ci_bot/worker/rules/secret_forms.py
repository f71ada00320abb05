"""Credentials that are known by their form, and keeping them out of everything that is said."""

from __future__ import annotations

import math
import re
from collections import Counter

# Forms that are credentials wherever they stand (the issuers document them).
FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("an AWS access key", re.compile(r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b")),
    ("a GitHub token", re.compile(r"\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{30,}")),
    ("a GitLab token", re.compile(r"\bglpat-[A-Za-z0-9_-]{16,}")),
    ("a Slack token", re.compile(r"\bxox[abeprs]-[A-Za-z0-9-]{10,}")),
    ("a Slack webhook", re.compile(r"hooks\.slack\.com/services/T[A-Z0-9]+/B[A-Z0-9]+/\w+")),
    ("a payment key", re.compile(r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}")),
    ("a Google key", re.compile(r"\bAIza[0-9A-Za-z_-]{30,}")),
    ("a Databricks token", re.compile(r"\bdapi[0-9a-f]{20,}")),
    ("an API key", re.compile(r"\bsk-[A-Za-z0-9_-]{20,}")),
    ("an npm token", re.compile(r"\bnpm_[A-Za-z0-9]{30,}")),
    ("a private key", re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY")),
    ("a signed token", re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[\w-]+")),
    ("an account key", re.compile(r"\bAccountKey=[A-Za-z0-9+/=]{20,}")),
    ("a shared access signature", re.compile(r"[?&]sig=[A-Za-z0-9%+/]{20,}")),
    (
        "a password in an address",
        re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s:/@'\"{}$<]+:(?![{$<])[^\s:/@'\"{}$<]{3,}@"),
    ),
    ("a bearer token", re.compile(r"\bBearer\s+(?![{$<%])[A-Za-z0-9_\-.=+/]{12,}")),
    (
        "a password in an address",
        re.compile(r"(?i)[?&;](?:password|pwd)=(?![{$<%])[^\s&;'\"]{3,}"),
    ),
)


def is_sample(value: str) -> bool:
    """A run of one character, as documentation writes keys."""
    body = re.sub(r"[^A-Za-z0-9]", "", value)[-12:]
    if not body:
        return False
    counts = Counter(body)
    entropy = -sum(n / len(body) * math.log2(n / len(body)) for n in counts.values())
    return entropy < 1.0


def hide(text: str) -> str:
    """`text` without anything that has the form of a credential."""
    for _, form in FORMS:
        text = form.sub("(hidden)", text)
    return text
