"""How what is in quarantine is cut into rounds, in cases that one can follow."""

from typing import Any

import pyarrow as pa

from headrace.pipelines.running.redrive_rounds import (
    INDEX_SCHEMA,
    Limits,
    Round,
    rounds_of,
    without,
)
from headrace.spark.refuge import Span

WIDE = Limits()


def index_of(*rows: tuple[Any, ...]) -> pa.Table:
    """Rows of moment, topic, partition, offset, weight, and of the flow `o` unless they say so."""
    names = ("moment", "topic", "partition", "offset", "weight", "flow")
    told = [dict(zip(names, (*row, "o")[:6], strict=True)) for row in rows]
    return pa.Table.from_pylist(told, INDEX_SCHEMA)


def test_a_small_quarantine_is_one_round_with_all_that_it_has() -> None:
    index = index_of((7, "a", 0, 3, 1), (7, "b", 1, 5, 1), (8, "a", 0, 9, 1), (6, None, 0, 1, 1))
    spans = (Span("a", 0, 3, 10), Span("b", 1, 5, 6))
    assert rounds_of(index, "o", WIDE) == [Round("o", 0, (7, 8), spans, (6,))]


def test_an_empty_quarantine_has_no_rounds() -> None:
    assert rounds_of(index_of(), "o", WIDE) == []


def test_rows_of_another_flow_are_not_among_them() -> None:
    index = index_of((7, "a", 0, 3, 1), (8, "a", 0, 4, 1, "p"))
    assert rounds_of(index, "p", WIDE) == [Round("p", 0, (8,), (Span("a", 0, 4, 5),), ())]


def test_rounds_end_before_they_have_too_many_rows() -> None:
    index = index_of(*((7, "a", 0, offset, 1) for offset in range(5)))
    spans = [part.spans for part in rounds_of(index, "o", Limits(rows_max=2))]
    assert spans == [(Span("a", 0, 0, 2),), (Span("a", 0, 2, 4),), (Span("a", 0, 4, 5),)]


def test_rounds_end_before_they_weigh_too_much_and_have_one_record_at_least() -> None:
    weights = (4, 4, 99, 4)
    index = index_of(*((7, "a", 0, offset, weight) for offset, weight in enumerate(weights)))
    spans = [part.spans for part in rounds_of(index, "o", Limits(bytes_max=10))]
    assert spans == [(Span("a", 0, 0, 2),), (Span("a", 0, 2, 3),), (Span("a", 0, 3, 4),)]


def test_rounds_follow_the_time_of_refusal_across_partitions() -> None:
    index = index_of((7, "a", 0, 0, 1), (8, "a", 0, 1, 1), (7, "a", 1, 0, 1), (8, "a", 1, 1, 1))
    rounds = rounds_of(index, "o", Limits(rows_max=2))
    assert [part.moments for part in rounds] == [(7,), (8,)]


def test_a_record_that_was_refused_again_keeps_those_behind_it_waiting() -> None:
    """Else a range of offsets of the first round would have a record of the second within it."""
    index = index_of((9, "a", 0, 0, 1), (7, "a", 0, 1, 1), (8, "b", 0, 5, 1), (8, "b", 0, 6, 1))
    rounds = rounds_of(index, "o", Limits(rows_max=2))
    assert [part.spans for part in rounds] == [(Span("b", 0, 5, 7),), (Span("a", 0, 0, 2),)]


def test_rows_that_name_no_record_are_cut_by_whole_moments() -> None:
    index = index_of(*((moment, "a", 0, None, 1) for moment in (7, 7, 7, 8, 9)))
    rounds = rounds_of(index, "o", Limits(rows_max=2))
    assert [(part.spans, part.nameless) for part in rounds] == [((), (7,)), ((), (8, 9))]


def test_batches_that_are_not_finished_are_left_out() -> None:
    index = index_of((7, "a", 0, 3, 1), (8, "a", 0, 4, 1), (8, "a", 0, 5, 1, "p"))
    assert without(index, {"o": {8, 9}, "p": set()})["offset"].to_pylist() == [3, 5]
