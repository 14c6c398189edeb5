"""Rounds of a redrive, whatever is in quarantine: each row in one, each within its limits."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.pipelines.running.correcting.redrive_rounds import (
    INDEX_SCHEMA,
    Limits,
    Round,
    rounds_of,
)

FLOW = "o"


class Row(NamedTuple):
    flow: str
    moment: int
    topic: str | None
    partition: int | None
    offset: int | None
    weight: int

    @property
    def unit(self) -> tuple[object, ...]:
        """The unit that is not divided: the record, or the moment if the row has none."""
        place = (self.topic, self.partition, self.offset)
        return (self.moment,) if None in place else place


ROWS = st.lists(
    st.builds(
        Row,
        flow=st.sampled_from([FLOW, "p"]),
        moment=st.integers(0, 8),
        topic=st.sampled_from(["a", "b", None]),
        partition=st.sampled_from([0, 1, None]),
        offset=st.none() | st.integers(0, 12),
        weight=st.integers(0, 20),
    ),
    max_size=60,
)
LIMITS = st.builds(Limits, rows_max=st.integers(1, 12), bytes_max=st.integers(1, 80))


def indexed(rows: Sequence[Row]) -> pa.Table:
    """In chunks, as a scan gives them."""
    halves = (rows[: len(rows) // 2], rows[len(rows) // 2 :])
    parts = [pa.Table.from_pylist([row._asdict() for row in half], INDEX_SCHEMA) for half in halves]
    return pa.concat_tables(parts)


def is_of(row: Row, part: Round) -> bool:
    """As a round's rows are read: by flow and moment, and by ranges or as those without a place."""
    if row.flow != part.flow:
        return False
    if row.topic is None or row.partition is None or row.offset is None:
        return not part.spans and row.moment in part.moments
    return row.moment in part.moments and any(
        (span.topic, span.partition) == (row.topic, row.partition)
        and span.first <= row.offset < span.end
        for span in part.spans
    )


@given(rows=ROWS, limits=LIMITS)
def test_each_row_is_in_one_round_with_all_of_its_record(rows: list[Row], limits: Limits) -> None:
    rounds = rounds_of(indexed(rows), FLOW, limits)
    assert [part.number for part in rounds] == list(range(len(rounds)))
    homes = defaultdict(set)
    for row in rows:
        found = [part.number for part in rounds if is_of(row, part)]
        assert len(found) == (row.flow == FLOW)
        homes[row.flow, row.unit].update(found)
    assert all(len(found) <= 1 for found in homes.values())


@given(rows=ROWS, limits=LIMITS)
def test_rounds_are_within_their_limits_and_no_smaller_than_need_be(
    rows: list[Row], limits: Limits
) -> None:
    rounds = rounds_of(indexed(rows), FLOW, limits)
    parts = [[row for row in rows if is_of(row, part)] for part in rounds]

    def fits(some: list[Row]) -> bool:
        return len(some) <= limits.rows_max and sum(r.weight for r in some) <= limits.bytes_max

    assert all(parts)
    assert all(fits(part) or len({row.unit for row in part}) == 1 for part in parts)
    placed = [part for part, one in zip(parts, rounds, strict=True) if one.spans]
    for some in (placed, parts[len(placed) :]):
        assert not any(fits(one + other) for one, other in pairwise(some))


@given(rows=ROWS, limits=LIMITS)
def test_a_partition_has_one_range_in_a_round(rows: list[Row], limits: Limits) -> None:
    for part in rounds_of(indexed(rows), FLOW, limits):
        partitions = [(span.topic, span.partition) for span in part.spans]
        assert len(partitions) == len(set(partitions))
