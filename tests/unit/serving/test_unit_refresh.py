"""Merged views: batch and speed layer as one, exact at the seam and at every moment."""

from headrace.lake.catalog import MergedViewEntry
from tests.builders.lake_services import ServedLake, append, counts, covering, replace, speed_rows

ROWS = "SELECT * FROM counts ORDER BY key"


def test_before_the_first_batch_run_the_speed_layer_is_all(served: ServedLake) -> None:
    _, speed = served.merged_view()
    append(speed, speed_rows([("a", 1, 1), ("a", 2, 2), ("b", 5, 2)]))
    served.refresh()
    assert served.rows(ROWS) == [("a", 3), ("b", 5)]


def test_no_record_is_counted_twice_at_the_seam(served: ServedLake) -> None:
    """ARC-1: the serving layer merges both layers exactly."""
    batch, speed = served.merged_view()
    append(speed, speed_rows([("a", 1, 1), ("a", 2, 2), ("b", 5, 3)]))
    replace(batch, counts({"a": 3}), covering(2))
    served.refresh()
    assert served.rows(ROWS) == [("a", 3), ("b", 5)]


def test_least_and_most_are_merged_too(served: ServedLake) -> None:
    batch, speed = served.merged_view({"n": "max"})
    append(speed, speed_rows([("a", 4, 3), ("b", 9, 3)]))
    replace(batch, counts({"a": 7, "b": 1}), covering(2))
    served.refresh()
    assert served.rows(ROWS) == [("a", 7), ("b", 9)]


def test_a_merged_sum_keeps_the_type_of_its_column(served: ServedLake) -> None:
    _, speed = served.merged_view()
    append(speed, speed_rows([("a", 1, 1)]))
    served.refresh()
    assert [column.type for column in served.ask(ROWS).columns] == ["VARCHAR", "BIGINT"]


def test_a_key_is_looked_up_in_both_layers(served: ServedLake) -> None:
    batch, speed = served.merged_view()
    append(speed, speed_rows([("a", 4, 3), ("b", 9, 3)]))
    replace(batch, counts({"a": 7}), covering(2))
    served.refresh()
    served.rows(ROWS)
    answer = served.look_up("counts", key="a")
    assert answer.rows.to_pylist() == [{"key": "a", "n": 11}]
    assert answer.versions == {"refined.counts__batch": 1, "refined.counts__speed": 1}


def test_a_view_that_cannot_be_computed_does_not_stop_the_others(served: ServedLake) -> None:
    served.merged_view()
    broken = MergedViewEntry(
        "refined.broken", ("nokey",), {"n": "sum"}, "refined.orders", "refined.orders"
    )
    served.orders(1)
    served.lake.put_view(broken.name, broken)
    served.refresh()
    assert served.rows(ROWS) == []
