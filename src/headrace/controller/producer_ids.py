"""Producer ids, handed to brokers in blocks so that most producers cost no metadata record."""

from typing import NamedTuple

from headrace.controller.decision import Decision
from headrace.errors import UnknownServerError
from headrace.metadata.image import MetadataImage
from headrace.metadata.records import VersionedRecord
from headrace.protocol.schemas.records.metadata import ProducerIdsRecord

BLOCK_SIZE = 1000
_LAST_ID = (1 << 63) - 1


class ProducerIdBlock(NamedTuple):
    """Ids that belong to one broker from now on, whether it gets to use them or not."""

    first: int
    size: int


def allocate_producer_ids(
    image: MetadataImage, broker_id: int, broker_epoch: int
) -> Decision[ProducerIdBlock]:
    """Give a broker the next block."""
    first = image.next_producer_id
    if first > _LAST_ID - BLOCK_SIZE:
        raise UnknownServerError("all producer ids have been used")
    record = ProducerIdsRecord(broker_id, broker_epoch, first + BLOCK_SIZE)
    return Decision((VersionedRecord(record),), ProducerIdBlock(first, BLOCK_SIZE))
