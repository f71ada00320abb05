"""GitHub's failures in words for the person who has to act. Pure."""

from __future__ import annotations

from datetime import datetime, timezone

from ci_bot.bot.github.network_faults import NetworkFault
from ci_bot.bot.github.port import NotFound, RejectedContent
from ci_bot.bot.github.retry import UNAUTHORIZED, RequestFailure, classify_failure
from ci_bot.errors import BadInput, BotError, GitHubUnavailable, RequestRefused

_WHEN_GITHUB_IS_WELL = "Run the job again when GitHub is well."

_LONGEST = 200
_API_URL = (
    "GITHUB_API_URL names the API: https://HOST/api/v3 on GitHub Enterprise Server, "
    "https://api.github.com otherwise."
)
# What mends a network that stays as it is; `{host}` is who was asked.
_SETTINGS: dict[NetworkFault, tuple[str, str]] = {
    "untrusted_certificate": (
        "untrusted_certificate",
        "Put the certificate authority of {host} into a file below the workspace, which is what "
        "the container sees, and name it in the step's `env:` as REQUESTS_CA_BUNDLE or "
        "SSL_CERT_FILE.",
    ),
    "wrong_certificate": (
        "wrong_certificate",
        "Its administrator has to renew the certificate, or GITHUB_API_URL names another host than "
        "the certificate does.",
    ),
    "no_tls": ("no_tls", "Name the port that speaks https. " + _API_URL),
    "proxy": (
        "proxy_failed",
        "HTTPS_PROXY names the proxy; correct it, or put {host} into NO_PROXY if it is reached "
        "without one.",
    ),
    "unknown_host": ("unknown_host", "Correct the name, or the runner's DNS. " + _API_URL),
    "url": ("bad_api_url", _API_URL),
}


def make_github_error(  # noqa: PLR0911 - one return per kind of failure
    failure: RequestFailure, *, doing: str, needs: str, host: str, until: float | None = None
) -> BotError:
    """Makes the error of a request that is given up.

    Args:
        failure: The last answer.
        doing: What was tried, to follow "could not": `write the comment`.
        needs: The workflow permission that it takes: `pull-requests: write`.
        host: The API's host, for failures of the network.
        until: When GitHub takes requests again (epoch seconds), if it said so.
    """
    kind = classify_failure(failure)
    if kind == "limited":
        return _make_rate_limit_error(doing, until)
    if failure.status is None:
        return make_unreachable_error(failure.network, failure.message, doing=doing, host=host)
    if kind == "broken":
        return GitHubUnavailable(
            f"The bot could not {doing}: {host} answered with status {failure.status}.",
            hint=_WHEN_GITHUB_IS_WELL,
        )
    if not failure.is_api and failure.status != UNAUTHORIZED:
        return make_unexpected_answer_error(
            doing, f"(status {failure.status}) is none of GitHub's API"
        )
    said = clean_server_text(failure.message)
    match failure.status:
        case 401:
            return BadInput(
                f"GitHub does not accept the token, so the bot could not {doing}.",
                hint="Give the action `github-token: ${{ github.token }}`, or a valid token.",
                reason_code="bad_credentials",
            )
        case 403 if "locked" in said.lower():
            return RequestRefused(
                f"The bot could not {doing}: the conversation is locked.",
                hint="Unlock the conversation, or read the report in the step summary.",
                reason_code="conversation_locked",
            )
        case 403:
            return RequestRefused(
                f"The token may not {doing}: it lacks the permission `{needs}`.",
                hint=f"Add `{needs}` under `permissions:` of the job. GitHub says: {said}",
                reason_code="missing_permission",
            )
        case 404 | 410:
            return NotFound(
                f"The bot could not {doing}: GitHub finds nothing there.",
                hint=(
                    f"Check the number or the name. GitHub also answers this way where the token "
                    f"lacks `{needs}`."
                ),
            )
        case status if status is not None and 300 <= status < 400:  # noqa: PLR2004 - HTTP's 3xx
            return RequestRefused(
                f"The bot could not {doing}: GitHub redirects elsewhere, and the token must not "
                "follow.",
                hint="The repository may have been renamed; run the job again then. " + _API_URL,
                reason_code="redirected",
            )
    return RejectedContent(
        f"GitHub refused to {doing} (status {failure.status}): {said}",
        hint="This looks like a defect of the bot; please report it with the log of this run.",
        said=said,
    )


def make_unexpected_answer_error(doing: str, what: str) -> GitHubUnavailable:
    """The error for an answer that is a success and makes no sense."""
    return GitHubUnavailable(
        f"The bot could not {doing}: GitHub's answer {what}.",
        hint="Run the job again; if it stays so, something else than GitHub answers. " + _API_URL,
        reason_code="github_unexpected",
    )


def make_unreachable_error(network: NetworkFault, words: str, *, doing: str, host: str) -> BotError:
    """The error for a request without an answer, with the setting that fixes it if one does.

    Args:
        network: Why there is none.
        words: The same for people.
        doing: What was tried, to follow "could not".
        host: Who was asked.
    """
    message = f"The bot could not {doing}: {host} did not answer ({clean_server_text(words)})."
    if network == "lost":
        return GitHubUnavailable(message, hint=_WHEN_GITHUB_IS_WELL)
    reason_code, hint = _SETTINGS[network]
    return BadInput(message, hint=hint.format(host=host), reason_code=reason_code)


def clean_server_text(text: str) -> str:
    """What a server said, as one short line without anything that a terminal would act on."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _make_rate_limit_error(doing: str, until: float | None) -> GitHubUnavailable:
    when = "for a while" if until is None else f"until {_format_epoch(until)}"
    return GitHubUnavailable(
        f"The bot could not {doing}: GitHub's rate limit holds {when}.",
        hint="Run the job again after that.",
        reason_code="rate_limited",
    )


def _format_epoch(epoch: float) -> str:
    try:
        return f"{datetime.fromtimestamp(epoch, timezone.utc):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return "a time far away"
