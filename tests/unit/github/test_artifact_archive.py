"""An artifact of another run is a zip file that a stranger's code may have made."""

from __future__ import annotations

import io
import stat
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_bot.bot.github.records import read_file_of_github_artifact
from ci_bot.errors import RequestRefused


def archive(
    *members: tuple[str, bytes], mode: int = 0, compression: int = zipfile.ZIP_DEFLATED
) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as opened:
        for name, content in members:
            member = zipfile.ZipInfo(name)
            member.external_attr = mode << 16
            opened.writestr(member, content, compress_type=compression)
    return stream.getvalue()


def test_read_member__of_an_honest_archive() -> None:
    plain_file = archive(("report.json", b"{}"), mode=stat.S_IFREG | 0o644)
    assert read_file_of_github_artifact(plain_file, "report.json", max_bytes=2, alone=True) == b"{}"
    both = archive(("report.md", b"#"), ("report.json", b"{}"))
    assert read_file_of_github_artifact(both, "report.json", max_bytes=10, alone=False) == b"{}"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "cannot be unpacked"),
        (b"PK\x03\x04 nonsense", "cannot be unpacked"),
        (archive(("report.json", b"{}"))[:-30], "cannot be unpacked"),
        (archive(), "more than the one file"),
        (archive(("other.json", b"{}")), "exactly one"),
        (archive(("../report.json", b"{}")), "exactly one"),
        (archive(("report.json", b"{}"), ("x", b"")), "more than the one file"),
        (archive(("report.json", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777), "no plain file"),
        (archive(("report.json", b"0" * 2_000_000)), "more than 1000 bytes"),
        (archive(("report.json", b"{}"), compression=zipfile.ZIP_BZIP2), "no plain file"),
        (archive(("report.json", b"{}"), compression=zipfile.ZIP_LZMA), "no plain file"),
    ],
)
def test_read_member__refuses(content: bytes, words: str) -> None:
    with pytest.raises(RequestRefused, match=words):
        read_file_of_github_artifact(content, "report.json", max_bytes=1_000, alone=True)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 120), st.integers(0, 255))
def test_read_member__any_damage_is_content_or_refused(junk: bytes, place: int, byte: int) -> None:
    honest = bytearray(archive(("report.json", b'{"a": 1}')))
    honest[place % len(honest)] = byte
    for damaged in (junk, bytes(honest)):
        try:
            content = read_file_of_github_artifact(
                damaged, "report.json", max_bytes=100, alone=True
            )
        except RequestRefused:
            continue
        assert len(content) <= 100
