"""What a redrive reads of a quarantine: little of all rows, all of a round's."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from headrace.lake.catalog import Lake
from headrace.lake.quarantine import QUARANTINE_SCHEMA
from headrace.lake.tables import Table
from headrace.pipelines.running.redrive_rounds import Round
from headrace.pipelines.running.redrive_rows import index_of, rows_of
from headrace.spark.refuge import Span
from tests.lakes import written


def refused(moment: int, topic: str | None, offset: int | None, flow: str = "o") -> dict[str, Any]:
    at = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=moment)
    row = {"quarantined_at": at, "flow": flow, "topic": topic, "partition": 0, "offset": offset}
    texts = {"reason": "ä", "payload": b"1234", "row": None}
    return {name: {**row, **texts}.get(name) for name in QUARANTINE_SCHEMA.names}


@pytest.fixture
def quarantine(tmp_path: Path) -> Table:
    """Of two batches, of which the wheel has rewritten the first: it holds texts as views."""
    table = Lake(tmp_path).create("quarantine.o", QUARANTINE_SCHEMA)
    first = [refused(7, "a", 0), refused(7, "a", 1), refused(7, "b", 1), refused(7, "a", 8)]
    table.append(written(table, [*first, refused(7, "a", None), refused(7, None, 0)]))
    table.delete('"offset" = 8')
    table.append(written(table, [refused(8, "a", 1), refused(8, None, 1), refused(7, "a", 1, "p")]))
    return table


def test_an_index_tells_of_each_row_where_it_came_from_and_what_it_weighs(
    quarantine: Table,
) -> None:
    found = {tuple(row.values()) for row in index_of(quarantine).to_pylist()}
    assert found == {
        *(("o", 7, *place, 6) for place in (("a", 0, 0), ("a", 0, 1), ("b", 0, 1), ("a", 0, None))),
        *(("o", 7, None, 0, 0, 6), ("o", 8, None, 0, 1, 6)),
        *(("o", 8, "a", 0, 1, 6), ("p", 7, "a", 0, 1, 6)),
    }


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        pytest.param(
            Round("o", 0, (7,), (Span("a", 0, 0, 1), Span("b", 0, 0, 9)), ()),
            {(7, "a", 0), (7, "b", 1)},
            id="ranges",
        ),
        pytest.param(
            Round("o", 0, (7, 8), (Span("a", 0, 1, 2),), (8,)),
            {(7, "a", 1), (8, "a", 1), (8, None, 1)},
            id="ranges, and those that name no record",
        ),
        pytest.param(Round("o", 0, (), (), (7,)), {(7, "a", None), (7, None, 0)}, id="no ranges"),
        pytest.param(
            Round("o", 0, (8,), None, (8,)), {(8, "a", 1), (8, None, 1)}, id="whole moments"
        ),
        pytest.param(Round("p", 0, (7,), None, (7,)), {(7, "a", 1)}, id="another flow"),
        pytest.param(
            Round("o", 0, (7,), tuple(Span("a", n, 0, 9) for n in range(1000)), ()),
            {(7, "a", 0), (7, "a", 1)},
            id="many partitions",
        ),
    ],
)
def test_a_round_has_its_rows_and_no_others(
    part: Round, expected: set[Any], quarantine: Table
) -> None:
    rows = rows_of(quarantine, part)
    assert rows.schema == QUARANTINE_SCHEMA
    moments = rows["quarantined_at"].cast("int64").to_pylist()
    places = zip(rows["topic"].to_pylist(), rows["offset"].to_pylist(), strict=True)
    found = [(moment, *place) for moment, place in zip(moments, places, strict=True)]
    assert len(found) == len(expected)
    assert set(found) == expected


def test_an_empty_quarantine_has_an_empty_index(tmp_path: Path) -> None:
    assert index_of(Lake(tmp_path).create("quarantine.o", QUARANTINE_SCHEMA)).num_rows == 0
