"""The control records that end a transaction in every partition it wrote to."""

from struct import Struct

from headrace.protocol.batches import NO_SEQUENCE, Record, build_batch

_KEY = Struct(">hh")
_VALUE = Struct(">hi")
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
    key = _KEY.pack(_VERSION, _COMMIT if is_commit else _ABORT)
    value = _VALUE.pack(_VERSION, coordinator_epoch)
    return build_batch(
        [Record(0, now_ms, key, value)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=NO_SEQUENCE,
        transactional=True,
        control=True,
    )
