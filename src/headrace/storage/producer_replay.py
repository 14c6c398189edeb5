"""Rebuild producer states from the batches of segment files."""

import logging
from collections.abc import Iterable
from struct import Struct

from headrace.errors import CorruptMessage
from headrace.protocol.batches import (
    ATTRIBUTES_POSITION,
    CONTROL,
    HEADER_SIZE,
    TRANSACTIONAL,
    BatchHeader,
    records_of,
)
from headrace.protocol.control_records import ControlType, control_type
from headrace.runtime import files
from headrace.storage.producer_state import EndMarker, ProducerStates
from headrace.storage.scanning import headers_in
from headrace.storage.segment import Segment

_log = logging.getLogger(__name__)

# A marker as Kafka writes it: the record's length, attributes and deltas and the key's length; key
# (version, kind); the value's length; value (version, coordinator epoch); no headers.
_USUAL = Struct(">5shhBhiB")
_USUAL_HEADER = Struct(">hiq")
_USUAL_SIZE = HEADER_SIZE + _USUAL.size
_USUAL_BEFORE_KEY = b"\x20\0\0\0\x08"
_USUAL_VALUE_SIZE = 0x0C


def replay_segments(states: ProducerStates, segments: Iterable[Segment], end_offset: int) -> None:
    """Replay the batches up to an offset; segments are in ascending order."""
    for segment in segments:
        try:
            _replay_segment(states, segment, end_offset)
        except CorruptMessage as error:
            # Such producers count as unknown: they may continue with any sequence number.
            _log.error(
                "producer states may be incomplete",
                extra={"segment": str(segment), "error": str(error)},
            )
    states.end_offset = end_offset


def _replay_segment(states: ProducerStates, segment: Segment, end_offset: int) -> None:
    position = segment.locate(states.end_offset)
    for at, header in headers_in(segment.open().fd, position, segment.size):
        if header.base_offset >= end_offset:
            break
        replay_batch(states, segment, at, header)


def replay_batch(
    states: ProducerStates, segment: Segment, position: int, header: BatchHeader
) -> None:
    """Replay one batch of a segment file; re-enter an abort in the segment's index."""
    if header.producer_id >= 0:
        if header.is_control:
            batch = files.pread(segment.open().fd, header.size, position)
            replay_marker(states, segment, batch, header, header.base_offset)
        else:
            states.replay(header, header.base_offset)
    states.end_offset = header.next_offset


def replay_marker(
    states: ProducerStates,
    segment: Segment,
    batch: bytes | memoryview,
    header: BatchHeader,
    base_offset: int,
) -> None:
    """Replay a control batch; list an abort in its segment once."""
    marker = marker_of(batch)
    if marker is not None:
        aborted = states.replay_marker(header, marker, base_offset)
        if aborted is not None and aborted not in segment.transactions.aborted:
            segment.note_aborted(aborted)


def check_coordinated(
    states: ProducerStates, batch: memoryview, header: BatchHeader, transaction_version: int
) -> None:
    """May a coordinator write this? It writes without sequence numbers, and ends transactions."""
    marker = marker_of(batch) if header.is_control else None
    if marker is not None:
        states.check_marker(header, marker, transaction_version)
    else:
        states.check_epoch(header)


def marker_of(batch: bytes | bytearray | memoryview) -> EndMarker | None:
    """Return the end of a transaction in a control batch; None for other types."""
    if len(batch) == _USUAL_SIZE:
        marker = _usual_marker(batch)
        if marker is not None:
            return marker
    records = records_of(batch)
    if not records:
        return None  # Compaction took the marker of a transaction that is gone as a whole.
    kind, value = control_type(records[0].key), records[0].value
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if value is None or len(value) < 6:
        raise CorruptMessage("a transaction marker has no value")
    coordinator_epoch = int.from_bytes(value[2:6], "big", signed=True)
    return EndMarker(kind == ControlType.COMMIT, coordinator_epoch, records[0].timestamp)


def _usual_marker(batch: bytes | bytearray | memoryview) -> EndMarker | None:
    """Read a marker of the usual layout, which nearly all have; otherwise None."""
    before_key, _, kind, value_size, _, epoch, header_count = _USUAL.unpack_from(batch, HEADER_SIZE)
    attributes, _, timestamp = _USUAL_HEADER.unpack_from(batch, ATTRIBUTES_POSITION)
    if (
        attributes != CONTROL | TRANSACTIONAL
        or before_key != _USUAL_BEFORE_KEY
        or kind not in (ControlType.ABORT, ControlType.COMMIT)
        or value_size != _USUAL_VALUE_SIZE
        or header_count
    ):
        return None
    return EndMarker(kind == ControlType.COMMIT, epoch, timestamp)
