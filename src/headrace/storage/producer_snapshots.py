"""The `.snapshot` files: producers as of an offset, so that a start need not read the whole log."""

from collections.abc import Iterable
from struct import Struct, error

from headrace.errors import HeadraceError
from headrace.protocol.batches import crc32c
from headrace.storage.producer_state import NO_OFFSET, Producer, RememberedBatch

_VERSION = 1
_HEADER = Struct(">hIi")
_ENTRY = Struct(">qhiqiqiq")
_CHECKED_FROM = 6  # The checksum covers what follows the version and itself.


class CorruptSnapshot(HeadraceError):
    """A snapshot that cannot be trusted; an older one and more of the log replace it."""


def encode(producers: Iterable[Producer]) -> bytes:
    """Only the newest batch of each producer survives a restart, as in Kafka."""
    entries = [_encode_entry(producer) for producer in producers]
    content = bytearray(_HEADER.pack(_VERSION, 0, len(entries)) + b"".join(entries))
    _HEADER.pack_into(content, 0, _VERSION, crc32c(content[_CHECKED_FROM:]), len(entries))
    return bytes(content)


def _encode_entry(producer: Producer) -> bytes:
    batch = producer.batches[-1] if producer.batches else RememberedBatch(-1, -1, 0, -1)
    return _ENTRY.pack(
        producer.id,
        producer.epoch,
        batch.last_sequence,
        batch.last_offset,
        batch.offset_delta,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.transaction_first_offset,
    )


def decode(content: bytes) -> list[Producer]:
    try:
        version, crc, count = _HEADER.unpack_from(content)
    except error:
        raise CorruptSnapshot(f"{len(content)} bytes are no producer snapshot") from None
    if version != _VERSION:
        raise CorruptSnapshot(f"unknown version {version}")
    if crc != crc32c(content[_CHECKED_FROM:]):
        raise CorruptSnapshot("its checksum does not match")
    if len(content) != _HEADER.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{len(content)} bytes cannot hold {count} producers")
    return [_decode_entry(entry) for entry in _ENTRY.iter_unpack(content[_HEADER.size :])]


def _decode_entry(entry: tuple[int, ...]) -> Producer:
    (
        producer_id,
        epoch,
        last_sequence,
        last_offset,
        offset_delta,
        timestamp,
        coordinator_epoch,
        first,
    ) = entry
    producer = Producer(producer_id, epoch)
    producer.coordinator_epoch = coordinator_epoch
    producer.last_timestamp = timestamp
    producer.transaction_first_offset = first if first >= 0 else NO_OFFSET
    if last_offset >= 0:
        producer.batches.append(
            RememberedBatch(last_sequence, last_offset, offset_delta, timestamp)
        )
    return producer
