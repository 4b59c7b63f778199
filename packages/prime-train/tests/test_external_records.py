"""What an external run may record: whatever is let through has a place in a row of JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prime_train.external_records import check_metrics, check_parquet, check_step

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.lists(st.integers()),
    st.dictionaries(st.text(), st.integers()),
    st.binary(),
)


@given(st.dictionaries(st.text(), VALUES), st.integers())
def test_a_row_is_plain_json_with_its_step_and_time_or_it_is_refused(
    metrics: dict[str, Any], step: int
) -> None:
    single = all(
        isinstance(value, (bool, int, float, str, type(None))) for value in metrics.values()
    )
    finite = all(
        math.isfinite(value) for value in metrics.values() if isinstance(value, (int, float))
    )
    fits = metrics.get("step", step) == step
    try:
        row = check_metrics(metrics, step)
    except ValueError:
        assert not (single and finite and fits and step >= 0)
        return
    assert single
    assert finite
    assert step >= 0
    assert (row["step"], type(row["step"])) == (step, int)
    assert row["_timestamp"] is not None or "_timestamp" in metrics
    assert {name: row[name] for name in metrics} == metrics
    json.dumps(row, allow_nan=False)


def test_a_step_among_the_metrics_becomes_a_number() -> None:
    assert check_metrics({"step": True}, 1)["step"] is not True


@given(st.binary(max_size=20), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bytes_and_a_file_of_them_are_judged_alike(
    tmp_path: Path, inner: bytes, framed: bool
) -> None:
    data = b"PAR1" + inner + b"PAR1" if framed else inner
    path = tmp_path / "samples.parquet"
    path.write_bytes(data)
    good = data.startswith(b"PAR1") and data.endswith(b"PAR1") and len(data) > 8
    for parquet in (data, path, str(path)):
        if good:
            check_parquet(parquet)
        else:
            with pytest.raises(ValueError, match="Parquet"):
                check_parquet(parquet)


@pytest.mark.parametrize("step", [1.0, "1", None, True])
def test_a_step_is_a_whole_number(step: Any) -> None:
    with pytest.raises(TypeError):
        check_step(step)
