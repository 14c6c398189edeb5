"""The messages about unknown names."""

from pathlib import Path

import pytest

from headrace.pipelines.problems import no_streaming_table
from tests.builders.declared_pipelines import load_folder

TABLES = (
    "CREATE STREAMING TABLE raw.events AS SELECT * FROM STREAM(sources.orders);"
    "CREATE STREAMING TABLE trusted.orders AS SELECT * FROM STREAM(raw.events);"
)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("orders", "; did you mean trusted.orders?"),
        ("raw.orders", "; did you mean trusted.orders?"),
        ("raw.evnts", "; did you mean raw.events?"),
        ("zzz", ""),
    ],
)
def test_a_wrong_name_of_a_table_is_answered_with_the_right_ones(
    name: str, advice: str, tmp_path: Path
) -> None:
    pipeline = load_folder(tmp_path, {"a.sql": TABLES})
    assert no_streaming_table(pipeline, name) == (
        f"{name} is not a streaming table of shop (there are raw.events, trusted.orders){advice}"
    )
