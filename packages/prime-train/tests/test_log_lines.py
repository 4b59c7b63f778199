"""Single lines of logs: JSON, prefixes, progress bars, and whatever else comes."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train import LogGap, LogLevel, parse_log_line


def test_a_json_line_is_read_whole() -> None:
    line = parse_log_line(
        '{"timestamp":"2026-10-12T18:05:00Z","level":"SUCCESS","message":"Step 1 | Reward 0.12",'
        '"tag":"step","exception":null,"process":7}'
    )
    assert line.message == "Step 1 | Reward 0.12"
    assert line.timestamp == datetime(2026, 10, 12, 18, 5, tzinfo=timezone.utc)
    assert line.level is LogLevel.SUCCESS
    assert (line.tag, line.exception, line.is_progress) == ("step", None, False)
    assert line.model_extra == {"process": 7}


def test_levels_of_tomorrow_are_kept() -> None:
    assert parse_log_line('{"level":"TRACE","message":"x"}').level == "TRACE"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[rank0]: loss is 1.0", "loss is 1.0"),
        ("[adminlog] [rank12]:  loss", "loss"),
        ("(EngineCore_DP0 pid=77) WARNING: slow", "WARNING: slow"),
        ("(APIServer pid=1) [rank0]: up", "up"),
        ("[rank] stays", "[rank] stays"),
        ("(pid=3) stays", "(pid=3) stays"),
        ("  indented", "  indented"),
        ("", ""),
        ("[rank0]: ", ""),
        ("{no json}", "{no json}"),
        ('{"level":"INFO"}', '{"level":"INFO"}'),
        ('{"message":1}', '{"message":1}'),
        ("[" * 5000, "[" * 5000),
        ("a\r", "a"),
    ],
)
def test_prefixes_go_and_text_stays(line: str, message: str) -> None:
    assert parse_log_line(line).message == message


def test_a_json_line_may_have_prefixes() -> None:
    assert parse_log_line('[adminlog] {"level":"INFO","message":"up"}').message == "up"


@pytest.mark.parametrize(
    ("line", "unfinished"),
    [
        ("Loading:  45%|####      | 9/20 [00:01<00:01,  8.1it/s]", True),
        ("0%|          | 0/20", True),
        ("Loading: 100%|##########| 20/20 [00:02<00:00]", False),
        ("Loading: 0%|  |\rLoading: 100%|##|", False),
        ("Loading: 100%|##|\rLoading: 3%|  |", True),
        ("(EngineCore pid=77) Capturing: 5%|#   |", True),
        ("GPU use is at 45% of 100%", False),
        ("accuracy 45%", False),
        ('{"type":"progress","message":"9 of 20"}', True),
        ('{"type":"rollout","message":"9 of 20"}', False),
        ('{"message":"Loading: 45%|####   |"}', True),
        ('{"message":"done","is_progress":true}', False),
    ],
)
def test_progress_that_is_not_at_its_end_is_marked(line: str, unfinished: bool) -> None:
    assert parse_log_line(line).is_progress is unfinished


def test_a_gap_is_a_warning_with_its_words() -> None:
    line = parse_log_line(LogGap("lines are missing"))
    assert (line.message, line.level, line.is_progress) == ("lines are missing", "WARNING", False)


@given(st.text())
def test_any_text_is_a_line(text: str) -> None:
    assert isinstance(parse_log_line(text).message, str)


@given(st.text(), st.dictionaries(st.text(), st.integers() | st.text() | st.none()))
def test_what_json_says_is_not_changed(message: str, others: dict[str, object]) -> None:
    known = {"timestamp", "level", "type", "tag", "exception", "is_progress"}
    extra = {key: value for key, value in others.items() if key not in known | {"message"}}
    line = parse_log_line(json.dumps({**extra, "message": message}))
    assert line.message == message
    assert line.model_extra == extra
