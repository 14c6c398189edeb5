"""Bounds as offsets."""

import pytest

from headrace.protocol.topic_partition import TopicPartition
from headrace.spark.source.errors import SourceError
from headrace.spark.source.options import Bound
from headrace.spark.source.resolving import check_order

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOUNDS = (Bound("startingTimestamp"), Bound("endingOffsets"))


def test_a_batch_that_ends_before_it_begins_is_refused_by_its_options() -> None:
    """An empty answer would look as if all had been read; the stock connector refuses it too."""
    error = "orders-1: the offset 10 of endingOffsets is before the offset 20"
    with pytest.raises(SourceError, match=error):
        check_order({FIRST: 0, SECOND: 20}, {FIRST: 5, SECOND: 10}, BOUNDS)


def test_a_batch_may_be_empty() -> None:
    check_order({FIRST: 5, SECOND: 0}, {FIRST: 5, SECOND: 0}, BOUNDS)
