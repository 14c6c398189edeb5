"""The control records that end a transaction in each of its partitions."""

from struct import Struct

from headrace.protocol.batches import (
    CONTROL,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_SEQUENCE,
    TRANSACTIONAL,
    seal,
)

# The one record: its length and deltas, key (version, kind), value (version, epoch), no headers.
_RECORD = Struct(">5shhBhiB")
_SIZE = HEADER_SIZE + _RECORD.size
_BEFORE_KEY = b"\x20\0\0\0\x08"
_VALUE_SIZE = 0x0C
_VERSION = 0
_ABORT, _COMMIT = 0, 1


def marker_batch(
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    now_ms: int,
    *,
    is_commit: bool,
) -> bytearray:
    """A batch with one marker, ready to be appended to any log."""
    batch = bytearray(_SIZE)
    HEADER.pack_into(
        batch,
        0,
        0,
        _SIZE - LOG_OVERHEAD,
        0,
        MAGIC,
        0,
        TRANSACTIONAL | CONTROL,
        0,
        now_ms,
        now_ms,
        producer_id,
        producer_epoch,
        NO_SEQUENCE,
        1,
    )
    kind = _COMMIT if is_commit else _ABORT
    _RECORD.pack_into(
        batch,
        HEADER_SIZE,
        _BEFORE_KEY,
        _VERSION,
        kind,
        _VALUE_SIZE,
        _VERSION,
        coordinator_epoch,
        0,
    )
    seal(batch)
    return batch
