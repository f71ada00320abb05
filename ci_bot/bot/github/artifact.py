"""An artifact of another run: a zip file that somebody else's code may have made. Pure."""

from __future__ import annotations

import io
import stat
import zipfile

from ci_bot.errors import Refused

_MOST_ENTRIES = 100
# What GitHub writes. The other kinds are unpacked without a limit, whatever `read` is asked for.
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_member(archive: bytes, name: str, *, max_bytes: int, alone: bool) -> bytes:
    """The content of the file `name` in a zip file, never written to a disk on the way.

    Args:
        archive: The zip file.
        name: The member's whole name.
        max_bytes: How much it may hold. The size that the archive declares is not believed: the
            reading stops there.
        alone: Whether a second member is a reason to refuse the whole archive.

    Raises:
        Refused: The archive is broken, holds no such regular file, too much, or more than it may.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            members = opened.infolist()
            if len(members) > _MOST_ENTRIES or (alone and len(members) != 1):
                raise _refused("holds more than the one file that it should")
            found = [member for member in members if member.filename == name]
            if len(found) != 1:
                raise _refused(f"does not hold exactly one `{name}`")
            if not _regular(found[0]) or found[0].compress_type not in _COMPRESSIONS:
                raise _refused(f"holds a `{name}` that is no plain file")
            with opened.open(found[0]) as stream:
                content = stream.read(max_bytes + 1)
    except Refused:
        raise
    except Exception:  # the module answers damage with a dozen kinds, EOFError and KeyError too
        raise _refused("cannot be unpacked") from None
    if len(content) > max_bytes:
        raise _refused(f"holds a `{name}` of more than {max_bytes} bytes")
    return content


def _regular(member: zipfile.ZipInfo) -> bool:
    kind = stat.S_IFMT(member.external_attr >> 16)
    return not member.is_dir() and kind in (0, stat.S_IFREG)


def _refused(what: str) -> Refused:
    return Refused(
        f"The artifact of the other run {what}.",
        hint="Run the review again; it leaves a fresh artifact.",
        reason_code="artifact_refused",
    )
