"""The rounds of a quarantine's rows, in cases that are easy to follow."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.quarantine import QUARANTINE_SCHEMA
from headrace.lake.tables import Table
from headrace.pipelines.running.correcting.redrive_rounds import (
    INDEX_SCHEMA,
    Limits,
    Round,
    index_of,
    rounds_of,
    rows_of,
    without,
)
from headrace.spark.side_output import Span
from tests.builders.lakes import written

WIDE = Limits()


def index(*rows: tuple[Any, ...]) -> pa.Table:
    """Rows of moment, topic, partition, offset, weight, and of the flow `o` if none is given."""
    names = ("moment", "topic", "partition", "offset", "weight", "flow")
    named = [dict(zip(names, (*row, "o")[:6], strict=True)) for row in rows]
    return pa.Table.from_pylist(named, INDEX_SCHEMA)


def test_a_small_quarantine_is_one_round_and_one_of_rows_without_a_place() -> None:
    found = index((7, "a", 0, 3, 1), (7, "b", 1, 5, 1), (8, "a", 0, 9, 1), (6, None, 0, 1, 1))
    spans = (Span("a", 0, 3, 10), Span("b", 1, 5, 6))
    assert rounds_of(found, "o", WIDE) == [Round("o", 0, (7, 8), spans), Round("o", 1, (6,), ())]


def test_an_empty_quarantine_has_no_rounds() -> None:
    assert rounds_of(index(), "o", WIDE) == []


def test_rows_of_another_flow_are_not_among_them() -> None:
    found = index((7, "a", 0, 3, 1), (8, "a", 0, 4, 1, "p"))
    assert rounds_of(found, "p", WIDE) == [Round("p", 0, (8,), (Span("a", 0, 4, 5),))]


def test_rounds_end_before_they_have_too_many_rows() -> None:
    found = index(*((7, "a", 0, offset, 1) for offset in range(5)))
    spans = [part.spans for part in rounds_of(found, "o", Limits(rows_max=2))]
    assert spans == [(Span("a", 0, 0, 2),), (Span("a", 0, 2, 4),), (Span("a", 0, 4, 5),)]


def test_rounds_are_bounded_in_bytes_and_have_at_least_one_record() -> None:
    weights = (4, 4, 99, 4)
    found = index(*((7, "a", 0, offset, weight) for offset, weight in enumerate(weights)))
    spans = [part.spans for part in rounds_of(found, "o", Limits(bytes_max=10))]
    assert spans == [(Span("a", 0, 0, 2),), (Span("a", 0, 2, 3),), (Span("a", 0, 3, 4),)]


def test_rows_without_a_place_are_cut_by_whole_moments() -> None:
    found = index(*((moment, "a", 0, None, 1) for moment in (7, 7, 7, 8, 9)))
    rounds = rounds_of(found, "o", Limits(rows_max=2))
    assert [(part.spans, part.moments) for part in rounds] == [((), (7,)), ((), (8, 9))]


def test_batches_that_are_not_finished_are_left_out() -> None:
    found = index((7, "a", 0, 3, 1), (8, "a", 0, 4, 1), (8, "a", 0, 5, 1, "p"))
    assert without(found, {"o": {8, 9}, "p": set()})["offset"].to_pylist() == [3, 5]


def refused(moment: int, topic: str | None, offset: int | None, flow: str = "o") -> dict[str, Any]:
    at = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=moment)
    row = {"quarantined_at": at, "flow": flow, "topic": topic, "partition": 0, "offset": offset}
    texts = {"reason": "ä", "payload": b"1234", "row": None}
    return {name: {**row, **texts}.get(name) for name in QUARANTINE_SCHEMA.names}


@pytest.fixture
def quarantine(tmp_path: Path) -> Table:
    """The Delta library has rewritten the first of two batches: it has texts as views."""
    table = Lake(tmp_path).create("quarantine.o", QUARANTINE_SCHEMA)
    first = [refused(7, "a", 0), refused(7, "a", 1), refused(7, "b", 1), refused(7, "a", 8)]
    table.append(written(table, [*first, refused(7, "a", None), refused(7, None, 0)]))
    table.delete('"offset" = 8')
    table.append(written(table, [refused(8, "a", 1), refused(8, None, 1), refused(7, "a", 1, "p")]))
    return table


def test_an_index_has_the_origin_and_size_of_each_row(
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
            Round("o", 0, (7,), (Span("a", 0, 0, 1), Span("b", 0, 0, 9))),
            {(7, "a", 0), (7, "b", 1)},
            id="ranges",
        ),
        pytest.param(
            Round("o", 0, (7, 8), (Span("a", 0, 1, 2),)),
            {(7, "a", 1), (8, "a", 1)},
            id="two moments",
        ),
        pytest.param(Round("o", 0, (7,), ()), {(7, "a", None), (7, None, 0)}, id="no place"),
        pytest.param(Round("p", 0, (7,), (Span("a", 0, 0, 9),)), {(7, "a", 1)}, id="another flow"),
        pytest.param(
            Round("o", 0, (7,), tuple(Span("a", n, 0, 9) for n in range(1000))),
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
