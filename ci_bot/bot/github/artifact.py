"""An artifact of another run: a zip file that somebody else's code may have made. Pure."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Callable
from urllib.parse import urlsplit

from ci_bot.bot.github.failures import (
    classify_network_error,
    make_unexpected_answer_error,
    make_unreachable_error,
)
from ci_bot.bot.github.urls import is_safe_download_url
from ci_bot.errors import GitHubUnavailable, RequestRefused

FRESH_ARTIFACT_HINT = "Run the review again; it leaves a fresh artifact."

_RUN_AGAIN = "Run the job again."

_MOST_ENTRIES = 100
# What GitHub writes. The other kinds are unpacked without a limit, whatever `read` is asked for.
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_member(archive: bytes, name: str, *, max_bytes: int, alone: bool) -> bytes:
    """The content of the file `name` in a zip file, never written to a disk on the way.

    Args:
        archive: The zip file.
        name: The member's whole name.
        max_bytes: How much it may hold. The size that the archive declares is not trusted: the
            reading stops there.
        alone: Whether a second member is a reason to refuse the whole archive.

    Raises:
        Refused: The archive is broken, holds no such regular file, too much, or more than it may.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            members = opened.infolist()
            if len(members) > _MOST_ENTRIES or (alone and len(members) != 1):
                raise _refuse_artifact("holds more than the one file that it should")
            found = [member for member in members if member.filename == name]
            if len(found) != 1:
                raise _refuse_artifact(f"does not hold exactly one `{name}`")
            if not _is_regular_file(found[0]) or found[0].compress_type not in _COMPRESSIONS:
                raise _refuse_artifact(f"holds a `{name}` that is no plain file")
            with opened.open(found[0]) as stream:
                content = stream.read(max_bytes + 1)
    except RequestRefused:
        raise
    except Exception:  # the module answers damage with a dozen kinds, EOFError and KeyError too
        raise _refuse_artifact("cannot be unpacked") from None
    if len(content) > max_bytes:
        raise _refuse_artifact(f"holds a `{name}` of more than {max_bytes} bytes")
    return content


def _is_regular_file(member: zipfile.ZipInfo) -> bool:
    kind = stat.S_IFMT(member.external_attr >> 16)
    return not member.is_dir() and kind in (0, stat.S_IFREG)


def _refuse_artifact(what: str) -> RequestRefused:
    return RequestRefused(
        f"The artifact of the other run {what}.",
        hint=FRESH_ARTIFACT_HINT,
        reason_code="artifact_refused",
    )


# The one request that leaves the API's host: an artifact, from where GitHub's storage has it.
#
# GitHub answers a download with a redirect to a signed URL on a storage host of its choosing, so
# this request carries no token, no cookie and no credentials of any kind, follows no further
# redirect, and reads no more than its limit.


_CHUNK = 65_536

_OK = 200


def download_signed_url(
    url: str,
    *,
    doing: str,
    max_bytes: int,
    timeout: float,
    monotonic: Callable[[], float],
    budget: float,
    trust: str | None = None,
) -> bytes:
    """The body at a signed URL.

    Args:
        url: Where GitHub said that it is; https, or http on a loopback address.
        doing: What this is for, for error messages.
        max_bytes: A longer body is refused.
        timeout: Seconds for the connection and for each wait for bytes.
        monotonic: A clock, against which `budget` seconds in all are counted.
        budget: Seconds in all.
        trust: A file or directory of certificates to trust instead of the usual ones.

    Raises:
        Refused: The body is too long.
        GitHubUnavailable: It did not come, or the URL is not one to ask.
        BadInput: A setting keeps it from coming.
    """
    import requests
    from urllib3.exceptions import HTTPError

    if not is_safe_download_url(url):
        raise make_unexpected_answer_error(doing, "points to a place that is not asked")
    started = monotonic()
    body = bytearray()
    try:
        with requests.Session() as session:
            session.auth = lambda request: request  # else a .netrc file could add credentials
            session.headers["Accept-Encoding"] = "identity"  # so that what is counted is all of it
            with session.get(
                url, stream=True, timeout=timeout, allow_redirects=False, verify=trust or True
            ) as answer:
                if answer.status_code != _OK:
                    raise GitHubUnavailable(
                        f"The bot could not {doing}: the storage answered with status "
                        f"{answer.status_code}.",
                        hint=_RUN_AGAIN,
                    )
                for chunk in answer.iter_content(_CHUNK):
                    body += chunk
                    if len(body) > max_bytes:
                        raise RequestRefused(
                            f"The artifact is larger than {max_bytes} bytes.",
                            hint="It is not a report that this action made.",
                            reason_code="artifact_refused",
                        )
                    if monotonic() - started > budget:
                        raise GitHubUnavailable(
                            f"The bot could not {doing} within {budget:.0f} s.",
                            hint=_RUN_AGAIN,
                        )
    except (OSError, HTTPError) as error:
        why = classify_network_error(error)
        host = f"the storage at {urlsplit(url).hostname}"
        raise make_unreachable_error(why.kind, why.words, doing=doing, host=host) from None
    return bytes(body)
