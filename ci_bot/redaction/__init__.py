"""What a secret is, and how it is kept out of every text that leaves the bot.

There are three nets. The first is exact: each secret that the bot knows (the values that the worker
gets, and the secrets inside them), in the encodings in which tools print it (`known_secrets`). The
second is one table of what credentials look like (`shapes`). The third finds values by the names
before them (`literals`). No net can catch what a hostile program does to hide a secret on purpose
(reversing it, one letter a line); docs/threat-model.md says so.

Everything here is pure, and both processes use it. Redact a text before it is cut: half a secret
does not look like one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.redaction.known_secrets import (
        list_encodings_of_secret,
        list_secret_values,
        read_dotenv_secrets,
    )
    from ci_bot.redaction.literals import (
        OBJECT_OF_VALUE,
        SHORTEST,
        SecretLikeness,
        SettingContent,
        classify_secret_setting,
        is_name_of_secret,
        is_random_like_secret,
        is_sample_of_secret,
        is_stand_in_for_secret,
        judge_likeness_to_secret,
        list_entry_passwords,
    )
    from ci_bot.redaction.redactor import (
        MASK,
        Redactor,
        quote_value,
        redact_shapes,
        shorten_redacted,
        strip_terminal_codes_for_redaction,
    )
    from ci_bot.redaction.shapes import (
        BEGIN_KEY,
        EVERY,
        CredentialShapeSet,
        find_issued_credentials,
        find_placed_credentials,
    )

__getattr__ = open_on_demand(
    __name__,
    {
        "known_secrets": ["list_encodings_of_secret", "read_dotenv_secrets", "list_secret_values"],
        "literals": [
            "SecretLikeness",
            "OBJECT_OF_VALUE",
            "SHORTEST",
            "is_random_like_secret",
            "is_sample_of_secret",
            "judge_likeness_to_secret",
            "list_entry_passwords",
            "is_stand_in_for_secret",
            "SettingContent",
            "classify_secret_setting",
            "is_name_of_secret",
        ],
        "redactor": [
            "MASK",
            "Redactor",
            "redact_shapes",
            "quote_value",
            "shorten_redacted",
            "strip_terminal_codes_for_redaction",
        ],
        "shapes": [
            "BEGIN_KEY",
            "EVERY",
            "CredentialShapeSet",
            "find_issued_credentials",
            "find_placed_credentials",
        ],
    },
)
