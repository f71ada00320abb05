"""Secrets go, in every form and from any pieces; SQL, hashes and names stay."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections.abc import Callable
from itertools import pairwise
from time import process_time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp
from sqlmesh.utils import sanitize_name

from ci_bot.bot.actions.workflow_commands import make_plain_line_of_workflow_log
from ci_bot.bot.report.markdown_text import one_line
from ci_bot.bot.sandbox.worker_output import SandboxedLogReader
from ci_bot.protocol.base import Failure, Versions
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.redaction import MASK, Redactor, list_encodings_of_secret
from ci_bot.redaction.redactor import LINE_SEGMENT, strip_terminal_codes_for_redaction
from tests.oracle.fuzzing import caught, fuzz
from tests.unit.redaction.innocents import INNOCENT_LINES
from tests.unit.redaction.leaks import LEAKS, Leak

TOKEN = "ghs_" + "Ab3dEf6hIj9lMn0pQr2tUv5xYz8bCd1fGh4j"
PASSWORD = "p@ss/w'rd|\"x\\ü %"
KNOWN = [TOKEN, PASSWORD, "first line of it\nsecond line of it", "overlapping", "lappings and"]
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow/IBAAK+CAQ\nEAabcd==\n-----END RSA PRIVATE KEY-----"

# Built here and not written down, so that no scanner takes this file for a leak.
TOKENS = [
    TOKEN,
    "gho_" + "a1B2" * 9,
    "github_pat_" + "11AAAAAAA0" * 8,
    "AKIA" + "IOSFODNN7EXAMPLE",
    "xoxb-" + "123456789012-abcdefghijkl",
    "eyJ" + "hbGciOiJIUzI1NiJ9" + "." + "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0" + ".c2lnbmF0dXJl",
    "dapi" + "0123456789abcdef" * 2,
    "AIza" + "SyA-1234567890abcdefghijklmnopqrstu",
    "glpat-" + "abcdefghij1234567890",
    KEY,
    KEY.replace("\n", "\\n"),
]
# What only the name of its file makes a password; in a log it is a word among others.
BY_PATH = {".netrc", ".pgpass", "conf/hive-site.xml"}
SURROUNDINGS = [
    *(("password=", "&x=1"), ("'password': '", "'"), ("PGPASSWORD=", " psql"), ("pwd = ", "")),
    *(
        ("postgresql://bot:", "@db.internal:5432/state"),
        ("jdbc:postgresql://h/d?password=", "&a=b"),
    ),
    *(("jdbc:sqlserver://h;user=a;password=", ";encrypt=true"), ("redis://:", "@cache")),
    *(("Authorization: Basic ", ""), ("Authorization: Bearer ", ""), ('"client_secret": "', '",')),
    *(("spark.hadoop.fs.s3a.secret.key=", ""), ("aws_secret_access_key = ", ""), ("--token ", "")),
    *(("IDENTIFIED BY '", "'"), ("AccountKey=", ";End"), ('\\"password\\": \\"', '\\", \\"b\\"')),
    *(("  password: ", ""), ("javax.jdo.option.ConnectionPassword=", ""), ("apiKey: '", "'")),
]


def leaks(redacted: str, secret: str) -> bool:
    return any(form in redacted for form in list_encodings_of_secret(secret) if len(form) >= 8)


# --- known secrets --------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", [TOKEN, PASSWORD, "correct horse battery staple", "pässwörd😀x"])
@pytest.mark.parametrize(
    "encode",
    [
        str,
        lambda text: base64.b64encode(text.encode()).decode(),
        lambda text: base64.b64encode(b"user:" + text.encode()).decode(),
        lambda text: base64.b64encode(b"x-access-token:" + text.encode() + b"@").decode(),
        lambda text: base64.b64encode(b"ab" + text.encode() + b"cd").decode(),
        lambda text: base64.urlsafe_b64encode(b"a" + text.encode() + b"xyz").decode(),
        lambda text: base64.encodebytes(text.encode() * 3).decode(),
        lambda text: quote(text, safe=""),
        quote_plus,
        lambda text: (
            quote(text, safe="").lower() if text.isascii() and text == text.lower() else text
        ),
        lambda text: json.dumps({"a": text}),
        lambda text: json.dumps(json.dumps({"a": text})),
        lambda text: json.dumps({"a": text}, ensure_ascii=False),
        shlex.quote,
        repr,
        lambda text: text.encode().hex(),
        lambda text: text.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&#39;"),
        lambda text: "'" + text.replace("'", "''") + "'",
        lambda text: '"' + text.replace('"', '""') + '"',
        lambda text: repr(text.encode()),
        lambda text: (
            exp.to_table(f"`{text}`", dialect="spark").sql("spark").lower()
            if text.isascii() and "`" not in text
            else text
        ),
        lambda text: sanitize_name(text).lower(),
    ],
)
def test_redact__known_secret_in_each_encoding(secret: str, encode: Callable[[str], str]) -> None:
    text = f"before {encode(secret)} after"
    redacted = Redactor([secret]).redact(text)
    assert MASK in redacted
    assert redacted.startswith("before ")
    assert redacted.endswith(" after")
    assert not leaks(redacted, secret)


@pytest.mark.parametrize("value", ["hunter22xyz\n", " hunter22xyz", "hunter22xyz\r\n"])
def test_redact__a_secret_that_was_pasted_with_its_line_break(value: str) -> None:
    assert "hunter22xyz" not in Redactor([value]).redact("no login with hunter22xyz here")


def test_redact__each_line_of_a_secret() -> None:
    redactor = Redactor(["first line of it\nsecond line of it\nx"])
    assert redactor.redact("a first line of it b") == "a *** b"
    assert redactor.redact("- first line of it\n- second line of it\n") == "- ***\n- ***\n"


def test_redact__a_secret_of_signs_leaves_names_alone() -> None:
    assert Redactor(["!!!!-?!!"]).redact("sqlmesh________shop") == "sqlmesh________shop"


def test_redact__secrets_that_overlap_both_go_whole() -> None:
    assert Redactor(KNOWN).redact("<overlappings and>") == "<***>"


def test_redact__short_secrets_only_as_words() -> None:
    redactor = Redactor(["tiger", "prod", "abc", ""])
    assert redactor.redact("tiger, tigers, prod, abc") == "***, tigers, prod, abc"


def test_redactor__does_not_show_secrets() -> None:
    assert TOKEN not in repr(Redactor([TOKEN]))


# --- shapes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", TOKENS)
def test_redact__token_shapes(token: str) -> None:
    redacted = Redactor().redact(f"error: ({token}) was refused\n")
    assert token not in redacted
    assert redacted.startswith("error: (")
    assert "Ab3dEf" not in redacted
    assert "MIIEow" not in redacted


@pytest.mark.parametrize(("before", "after"), SURROUNDINGS)
def test_redact__values_in_pairs_and_urls(before: str, after: str) -> None:
    secret = "S3cr3t-v4lue"
    redacted = Redactor().redact(f"x {before}{secret}{after}")
    assert secret not in redacted
    assert redacted.startswith(f"x {before}"[: len(before) - 7])
    assert redacted.endswith(after)


def test_redact__url_password_with_at_sign() -> None:
    assert Redactor().redact("postgres://u:p@ss:w@host/db") == "postgres://u:***@host/db"


def test_redact__private_key_over_lines_and_text_goes_on_after_it() -> None:
    diff = "\n".join(f"+    {line}" for line in KEY.split("\n"))
    redacted = Redactor().redact(f"+key: |\n{diff}\n+next: value\nSELECT 1\n")
    assert "MIIE" not in redacted
    assert redacted.endswith("+next: value\nSELECT 1\n")


def test_redact__a_key_that_only_begins_does_not_swallow_the_rest() -> None:
    text = "-- looks for '-----BEGIN PRIVATE KEY-----' in comments\nSELECT a, b FROM t\n"
    assert Redactor().redact(text).endswith("\nSELECT a, b FROM t\n")


# --- what must stay -------------------------------------------------------------------------------

HARMLESS = [
    f"plan_id {hashlib.sha256(b'plan').hexdigest()}",
    f'{{"plan":"{hashlib.sha256(b"x").hexdigest()}","key":"analytics/spark_prod","run_id":123456789}}',
    f"snapshot sushi.orders fingerprint {hashlib.md5(b'x', usedforsecurity=False).hexdigest()}",
    f"head {hashlib.sha1(b'x', usedforsecurity=False).hexdigest()}",
    "sqlmesh__sushi.sushi__orders__2893710983__dev",
    "SELECT a.token, b.password_hash FROM sessions AS a JOIN users AS b ON a.token = b.token",
    "WHERE password IS NOT NULL AND u.secret = u.old_secret AND token = @token AND token = :token",
    "CREATE TABLE t (password VARCHAR(20), token STRING, api_key text)",
    "columns:\n  token: string\n  password: varchar\n  secret: bigint",
    "password: {{ env_var('DB_PASSWORD') }}",
    "password: ${{ secrets.DB_PASSWORD }}",
    "password = os.environ['DB_PASSWORD']",
    "connect(user=user, password=password, token=self.token)",
    "`user_token`: breaking, `tokens.daily`: non-breaking, token: indirect",
    "max_tokens=4096, tokens: 12, token=7, is_secret = true, password=NULL, password: '***'",
    "https://github.com/org/repo/pull/7#issuecomment-1?a=b@c",
    "s3a://bucket/path/part-00000-1a2b3c4d-0000-4000-8000-1a2b3c4d5e6f.c000.snappy.parquet",
    "git@github.com:org/repo.git and http://localhost:4040/jobs/",
    "2026-01-01T00:00:00Z - 2026-01-02T00:00:00Z, 31 intervals, 4 batches",
    "| `sushi.orders` | FULL | 2026-01-01 | breaking | 12.5 % |",
    "unique_key (order_id), partitioned_by (ds), grain (id), primary_key = id, sort_key: ds",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "SELECT id FROM sessions WHERE token = identifier AND secret = orders_key",
    "ON credential = owners AND access_key = 'customer'",
    "secretary = 'Ann'",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_redact__leaves_plans_sql_and_names_alone(text: str) -> None:
    assert Redactor([TOKEN, PASSWORD]).redact(text) == text


# --- any pieces, the same result ------------------------------------------------------------------

fragments = st.sampled_from(
    [
        *(*KNOWN, *TOKENS, *HARMLESS),
        *("".join((before, "S3cr3t-v4lue", after)) for before, after in SURROUNDINGS),
        *(base64.b64encode(b"u:" + TOKEN.encode()).decode(), quote(PASSWORD), json.dumps(PASSWORD)),
        *("\n", "\r\n", " ", "'", '"', ":", "=", "@", "//", "-----BEGIN PRIVATE KEY-----", "\\n"),
        *("-----END PRIVATE KEY-----", "password", "token=", "ghs_", "eyJ", "x" * 40),
    ]
)
texts = st.lists(st.one_of(fragments, st.text(max_size=4)), max_size=10).map("".join)
cuts = st.lists(st.integers(min_value=0, max_value=2_000), max_size=8)
REDACTOR = Redactor(KNOWN)


def pieces(text: str, at: list[int]) -> list[str]:
    borders = [0, *sorted(place % (len(text) + 1) for place in at), len(text)]
    return [text[start:end] for start, end in pairwise(borders)]


def by_stream(parts: list[str]) -> str:
    stream = REDACTOR.open_stream()
    return "".join(stream.feed_text(part) for part in parts) + stream.flush_rest()


def by_piece(parts: list[str]) -> str:
    """What tfcmt does: each write on its own."""
    return "".join(REDACTOR.redact(part) for part in parts)


def pieces_do_not_matter(redact: Callable[[list[str]], str], text: str, at: list[int]) -> bool:
    return redact(pieces(text, at)) == REDACTOR.redact(text)


def nothing_known_is_left(redact: Callable[[str], str], text: str) -> bool:
    return not any(leaks(redact(text), secret) for secret in KNOWN)


@fuzz(10_000)
@given(texts, cuts)
@example("x" + TOKEN, [3, 7])
@example(KEY, [10, 40, 60])
def test_stream__any_pieces_give_the_same(text: str, at: list[int]) -> None:
    assert pieces_do_not_matter(by_stream, text, at)


@fuzz(5_000)
@given(texts)
def test_redact__nothing_known_is_left(text: str) -> None:
    assert nothing_known_is_left(REDACTOR.redact, text)


def test_mutation__redacting_each_piece_alone_is_caught() -> None:
    assert caught(
        st.tuples(texts, cuts), lambda pair: not pieces_do_not_matter(by_piece, pair[0], pair[1])
    )


def test_mutation__identity_is_caught() -> None:
    assert caught(texts, lambda text: not nothing_known_is_left(str, text))


@pytest.mark.parametrize("secret", [TOKEN, PASSWORD, KEY.replace("\n", "\\n")])
@pytest.mark.parametrize("distance", [0, 1, 20, 60])
def test_stream__secret_across_the_cut_of_an_endless_line(secret: str, distance: int) -> None:
    text = "a " * ((LINE_SEGMENT - distance) // 2) + secret + " b" * LINE_SEGMENT
    stream = Redactor(KNOWN).open_stream()
    shown = [stream.feed_text(text[start : start + 4096]) for start in range(0, len(text), 4096)]
    assert "".join(shown), "an endless line must not be held back for ever"
    whole = "".join(shown) + stream.flush_rest()
    assert whole == Redactor(KNOWN).redact(text)
    assert whole == text.replace(secret, MASK)


@pytest.mark.parametrize("before", ["", "x" * 10])
def test_cut__always_takes_something_also_of_a_secret_as_long_as_the_segment(before: str) -> None:
    secret = "k3Y." * (LINE_SEGMENT // 4 + 10)
    redactor = Redactor([secret])
    line = before + secret + " " * (LINE_SEGMENT + len(secret))

    # A cut at 0 would take nothing from an endless line, and the stream would go on for ever.
    assert redactor.find_cut(line) == (len(before) or len(secret))
    assert redactor.redact(line).strip() == before + MASK


@pytest.mark.parametrize(
    "text",
    ["a" * 300_000, "eyJ" * 100_000, "a://" * 75_000, "token=\\\\\\" * 30_000, "ghs_" * 75_000],
)
def test_redact__hostile_text_ends(text: str) -> None:
    assert len(Redactor(KNOWN).redact(text)) <= len(text)


# --- documents and environments -------------------------------------------------------------------


def test_document__every_string_of_a_contract() -> None:
    failure = Failure(
        stage="plan",
        reason_code="x",
        exit_code=1,
        message=f"cannot open postgresql://bot:hunter22@db with {TOKEN}",
        hint=None,
        line=3,
    )
    redacted = Redactor([TOKEN]).redact_document(failure)
    assert redacted.message == "cannot open postgresql://bot:***@db with ***"
    assert redacted == failure.model_copy(update={"message": redacted.message})


def test_document__what_is_compared_stays_as_it_is() -> None:
    """A secret may be a word of ours, or a part of an id; the document still is the same one."""
    document = CleanupDocument(
        environment="pr_482197553041",
        existed=True,
        result="removed",
        views_dropped=["shop__pr_482197553041.orders"],
        state_record_removed=True,
        seconds=1.0,
        timings={"drop 482197553041": 1.0},
        versions=Versions(ci_bot="1", python="3"),
    )
    redacted = Redactor(["482197553041", "removed"]).redact_document(document)
    assert (redacted.environment, redacted.result) == ("pr_482197553041", "removed")
    assert redacted.views_dropped == ["shop__pr_***.orders"]
    assert redacted.timings == {"drop ***": 1.0}
    assert CleanupDocument.model_validate_json(redacted.to_json()) == redacted


# --- what nobody tests by chance ------------------------------------------------------------------


@pytest.mark.parametrize("length", [LINE_SEGMENT + 1, 2 * LINE_SEGMENT])
def test_cut__a_secret_that_fills_the_segment_ends_behind_it(length: int) -> None:
    """At the secret's own start no cut is one: the rest would be as long as before, for ever."""
    redactor = Redactor(["k" * length])
    line = "k" * length + " and more " * 100_000
    assert redactor.find_cut(line) == length


def test_redact__a_comparison_with_blanks_is_sql() -> None:
    """Without the blanks it is a setting; with them a column, unless it looks like a token."""
    assert Redactor().redact("WHERE a.token = id12345") == "WHERE a.token = id12345"
    assert Redactor().redact("WHERE a.token = 'page_view'") == "WHERE a.token = 'page_view'"
    assert Redactor().redact("a.token=id12345") == "a.token=***"
    assert Redactor().redact("token = id1234567") == "token = ***"
    # A password is one, whatever it looks like, unless it is asked of something.
    assert Redactor().redact("WHERE u.password = 'swordfish'") == "WHERE u.password = '***'"
    assert Redactor().redact("password = get(vault)") == "password = get(vault)"
    assert Redactor().redact("password=8675309jny") == "password=***"
    assert Redactor().redact("password: 90d") == "password: 90d"
    assert Redactor().redact("password=3.14-Sup3rS3cret") == "password=***"
    assert Redactor().redact("password=2024-01-01TopSecret9") == "password=***"
    # As long as this, a number may be drawn by a machine.
    assert Redactor().redact("token=1234098") == "token=1234098"
    assert Redactor().redact("token=" + "12340987") == "token=***"


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.name)
def test_redact__every_leak_that_a_file_may_hold(leak: Leak) -> None:
    """One table: what is a finding in a file is hidden in a log, but for what its path says."""
    if leak.path in BY_PATH or not leak.surely:
        return
    redacted = Redactor().redact(f"2026-01-01 ERROR in this file:\n+ {leak.text}\n")
    lines = [line for line in leak.secret.splitlines() if "PRIVATE KEY" not in line]
    assert not any(line in redacted for line in lines)


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.name)
def test_redact__twice_is_once(leak: Leak) -> None:
    once = Redactor([TOKEN]).redact(leak.text)
    assert Redactor([TOKEN]).redact(once) == once


def test_redact__a_value_whose_quote_was_cut_off() -> None:
    assert Redactor().redact("password='hunter22") == "password='***"
    assert Redactor().redact('{"password": "hunter22') == '{"password": "***'


def test_redact__what_pydantic_repeats_of_its_input() -> None:
    told = (
        "[type=int_parsing, input_value={'host': 'db', 'pas...ord': 'hunter22'}, input_type=dict]"
    )
    assert "hunter22" not in Redactor().redact(told)
    assert "type=int_parsing" in Redactor().redact(told)


# --- terminal codes -------------------------------------------------------------------------------

CODES = ["\x1b[0m", "\x1b[38;5;208m", "\x1b]8;;https://x.example\x1b\\", "\x1bM", "\x9b1m"]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("secret", [PASSWORD, TOKEN])
def test_redact__a_value_with_terminal_codes_in_it(secret: str, code: str) -> None:
    """Whatever shows a text takes the codes out, and puts the value together again."""
    redactor = Redactor([secret])
    for at in range(1, len(secret), 3):
        coloured = f"a {secret[:at]}{code}{secret[at:]} b {code}c"
        for shown in (
            make_plain_line_of_workflow_log(redactor.redact(coloured)),
            one_line(redactor.redact(coloured)),
        ):
            assert shown == f"a {MASK} b c"


def test_redact__a_value_whose_every_character_has_a_colour() -> None:
    coloured = "".join(f"\x1b[3{place % 8}m{char}" for place, char in enumerate(TOKEN))
    assert (
        strip_terminal_codes_for_redaction(Redactor([TOKEN]).redact(f"<{coloured}>")) == f"<{MASK}>"
    )


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.name)
def test_redact__a_leak_with_a_colour_in_it(leak: Leak) -> None:
    """No known value: the shape alone gives it away, once the colours are gone."""
    if leak.path in BY_PATH or not leak.surely:
        return
    half = len(leak.secret.splitlines()[0]) // 2
    coloured = leak.text.replace(leak.secret, f"{leak.secret[:half]}\x1b[1m{leak.secret[half:]}")
    shown = strip_terminal_codes_for_redaction(Redactor().redact(coloured))
    assert shown == Redactor().redact(leak.text)


def test_redact__a_coloured_private_key() -> None:
    coloured = "\n".join(f"\x1b[32m{line}\x1b[0m" for line in KEY.split("\n"))
    shown = Redactor().redact(f"{coloured}\nrest")
    assert not any(line in shown for line in KEY.split("\n")[1:3])
    assert shown.endswith("rest")


def test_log__a_value_with_a_colour_in_it_whatever_the_reads() -> None:
    value = "S3cr3t-Vq81zPw/x+y=9"
    printed = f"LOGGED {value[:8]}\x1b[0m{value[8:]} end\n".encode()
    for size in (1, 5, 1000):
        reader = SandboxedLogReader(Redactor([value]), line_characters=30, limit_bytes=1000)
        pieces = [printed[at : at + size] for at in range(0, len(printed), size)]
        lines = [line for piece in pieces for line in reader.feed_bytes(piece)]
        assert [make_plain_line_of_workflow_log(line) for line in lines] == [f"LOGGED {MASK} end"]


@pytest.mark.parametrize(
    "line",
    [
        line
        for _, line in INNOCENT_LINES
        if any(word in line for word in ("mysql", "://", "sshpass", "machine", "password "))
        and not any(
            word in line
            for word in ("PASSWORD}", "user:password@", "{password}", "curl -", "hunter22")
        )
    ],
)
def test_redact__addresses_commands_and_sentences_stay(line: str) -> None:
    assert Redactor().redact(line) == line


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[" * 60_000,
        "\x1b]" * 60_000,
        "\x1b[31ma" * 30_000,
        "a://b:" * 30_000,
        "a://b:c/" * 30_000,
        "\"a://b:'" * 30_000,
        "mysql -p" * 30_000,
        "mysql " + "x " * 60_000,
        "password x " * 20_000,
        " login a" * 30_000,
        '"secret": {"value": ' * 10_000,
        "sshpass -p " * 20_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_redact__the_time_grows_with_the_length_only(text: str) -> None:
    """Four times the text takes about four times as long, and not sixteen times."""

    def seconds(part: str) -> float:
        def once() -> float:
            started = process_time()
            Redactor(KNOWN).redact(part)
            return process_time() - started

        return min(once() for _ in range(3))

    short = seconds(text[: len(text) // 4])
    assert seconds(text) < 9 * short + 0.2
