"""Producer ids go out in blocks that never overlap."""

import pytest

from headrace.controller.producer_ids import allocate_producer_ids
from headrace.errors import UnknownServerError
from headrace.protocol.schemas.records.metadata import ProducerIdsRecord
from tests.images import carried_out, image_with, replayed


def test_blocks_follow_each_other() -> None:
    image = image_with()
    first = allocate_producer_ids(image, 1, 101)
    image = carried_out(image, first)
    second = allocate_producer_ids(image, 1, 101)
    assert [tuple(first.reply), tuple(second.reply)] == [(0, 1000), (1000, 1000)]
    assert carried_out(image, second).next_producer_id == 2000


def test_ids_do_not_start_over() -> None:
    image = replayed(image_with(), [ProducerIdsRecord(1, 1, 2**63 - 5)])
    with pytest.raises(UnknownServerError):
        allocate_producer_ids(image, 1, 101)
