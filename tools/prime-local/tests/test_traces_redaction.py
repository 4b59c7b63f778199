"""Credentials leave stored documents, and nothing else does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_uploads import Uploads, lines, record, rows

from prime_local.traces.redaction import REDACTED, redact

if TYPE_CHECKING:
    from conftest import OpenPlatform

LETTERS = "Ab3" * 20
# Made up here and now, so that no scanner takes this file for a leak.
KEY_BLOCK = ["-----BEGIN RSA PRIVATE", " KEY-----\nMIIE/x+y=\nAB==\n-----END RSA PRIVATE KEY-----"]
PEM = "".join(KEY_BLOCK)
CREDENTIALS = [
    "sk-" + LETTERS[:48],
    "sk-proj-" + LETTERS,
    "sk-ant-api03-" + LETTERS + "-AA",
    "AKIA" + "ABCD2345" * 2,
    "ASIA" + "ABCD2345" * 2,
    "ghp_" + LETTERS[:36],
    "ghs_" + LETTERS[:40],
    "github_pat_" + LETTERS + "_x",
    "hf_" + LETTERS[:34],
    "AIza" + LETTERS[:35],
    "xoxb-" + "1234567890-abc",
    "pit_" + LETTERS.lower()[:40],
    PEM,
    PEM.replace("RSA ", ""),
]
# Pieces that come near to a credential, or that JSON writes in more than one way.
NEAR = [
    "sk-",
    "task-1 ",
    "Bearer of",
    "hf_",
    "AKIA",
    "pit_",
    "\\",
    '"',
    "\n",
    "é",
    "😀",
    "/",
    "ghp_",
]

# Too short, all of them together, to become one.
texts = st.lists(st.sampled_from(NEAR) | st.text(max_size=3), max_size=5).map("".join)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def encodings(value: Any) -> list[str]:
    """Return JSON spellings of a value; an encoder may escape more than it must."""
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return [plain, json.dumps(value, indent=1), plain.replace("/", "\\/"), escaped(plain)]


def escaped(source: str) -> str:
    """Spell the letters a, k and s of strings as escapes, where they are not part of one."""

    def spell(string: re.Match[str]) -> str:
        return re.sub(
            r"\\u....|\\.|[aks]",
            lambda piece: f"\\u00{ord(piece[0]):02x}" if piece[0] in "aks" else piece[0],
            string[0],
        )

    return re.sub(r'"(?:[^"\\]|\\.)*"', spell, source)


@given(values)
def test_a_document_without_credentials_stays_as_it_is(value: Any) -> None:
    for document in encodings({"x": value}):
        assert redact(document) == document


@given(before=texts, after=texts, around=values, credential=st.sampled_from(CREDENTIALS))
def test_a_credential_goes_and_all_around_it_stays(
    before: str, after: str, around: Any, credential: str
) -> None:
    # A credential that letters run into is a longer word, not a credential.
    text = f"{before} {credential} {after}"
    value = {"a": around, "b": [{"c": text}, 1.5], credential: around}
    expected = {**value, "b": [{"c": f"{before} {REDACTED} {after}"}, 1.5]}
    for document in encodings(value):
        redacted = redact(document)
        assert json.loads(redacted) == expected
        head, _, tail = redacted.partition(REDACTED)
        assert document.startswith(head)
        assert document.endswith(tail)
        assert redact(redacted) == redacted


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_escapes_of_letters_hide_nothing(credential: str) -> None:
    for around in ("", "\n", "\\", '"', "😀"):
        document = escaped(json.dumps({"x": around + credential + around}))
        assert "sk-" not in document
        assert json.loads(redact(document)) == {"x": around + REDACTED + around}


def test_what_comes_with_a_name_is_found_by_it() -> None:
    secret = "aB3/" * 10
    for text in (
        f"Authorization: Bearer {secret}==",
        f"bearer {secret}",
        f'aws_secret_access_key = "{secret}"',
        f"AWS_SECRET_ACCESS_KEY={secret}\n",
        json.dumps({"aws_secret_access_key": secret}),
    ):
        for document in encodings([text]):
            (found,) = json.loads(redact(document))
            assert secret not in found
            assert found == text.replace(secret + "==", REDACTED).replace(secret, REDACTED)


def test_json_within_a_string_stays_json() -> None:
    for credential in CREDENTIALS:
        inner = json.dumps({"key": credential, "rest": [1]})
        (found,) = json.loads(redact(json.dumps([inner])))
        assert json.loads(found) == {"key": REDACTED, "rest": [1]}


def test_several_in_one_document_all_go() -> None:
    document = json.dumps([CREDENTIALS, " ".join(CREDENTIALS), "sk-short", {"k": CREDENTIALS[0]}])
    found = redact(document)
    assert found.count(REDACTED) == 2 * len(CREDENTIALS) + 1
    assert "sk-short" in found


def test_words_that_only_look_alike_stay() -> None:
    for text in (
        "task-" + LETTERS,
        "xhf_" + LETTERS,
        "my_sk-" + LETTERS,
        "sk-too-short",
        "hf_hub_download",
        "AKIA" + "lower" * 4,
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "the bearer of this letter",
    ):
        document = json.dumps([text])
        assert redact(document) == document, text


async def test_stores_index_and_summaries_come_from_the_redacted_document(
    open_platform: OpenPlatform, tmp_path: Path
) -> None:
    _, client = await open_platform(data_dir=tmp_path)
    uploads = Uploads(client)
    key = client.key["Authorization"].removeprefix("Bearer ")
    said = {"message": {"role": "user", "content": f"my key is {key}.", "reasoning_content": key}}
    trace = record("a", nodes=[said], metrics={"n": 1}, stop_condition=key)
    await uploads.stored(trace)
    member = {**trace, "id": "b"}
    await uploads.stored({"id": "e", "traces": [member], "outcome": key}, line_format="episode")
    header = {"type": "session", "id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": key}
    header["timestamp"] = rows(tmp_path, "SELECT strftime('%Y-%m-%dT%H:%M:%SZ') AS now")[0]["now"]
    await uploads.stored([header, {"type": "message", **said}], line_format="prime_agent")

    everything = (tmp_path / "traces.sqlite3").read_bytes()
    everything += (tmp_path / "traces.sqlite3-wal").read_bytes()
    assert key.encode() not in everything
    documents = rows(
        tmp_path, "SELECT document, size_bytes FROM documents JOIN traces ON id = trace"
    )
    expected = lines(trace)[:-1].replace(key.encode(), REDACTED.encode())
    assert documents[0] == {"document": expected, "size_bytes": len(expected)}
    assert documents[1]["document"] == expected.replace(b'"a"', b'"b"', 1)
    contents = rows(tmp_path, "SELECT content FROM nodes")
    assert {row["content"] for row in contents} == {f"my key is {REDACTED}."}
