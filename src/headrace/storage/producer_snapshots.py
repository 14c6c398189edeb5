"""The `.snapshot` files: producers as of an offset, so that a start need not read the whole log."""

import logging
from collections.abc import Iterable
from struct import Struct, error

from headrace.errors import HeadraceError
from headrace.protocol.batches import crc32c
from headrace.runtime import files
from headrace.storage.producer_state import NO_OFFSET, Producer, ProducerStates, RememberedBatch
from headrace.storage.resources import Deletions
from headrace.storage.segment import DELETED, SNAPSHOT

_log = logging.getLogger(__name__)

_VERSION = 1
_HEADER = Struct(">hIi")
_ENTRY = Struct(">qhiqiqiq")
_CHECKED_FROM = 6  # The checksum covers what follows the version and itself.


class CorruptSnapshot(HeadraceError):
    """A corrupt snapshot; an older one and a longer replay replace it."""


class Snapshots:
    """The snapshots that a log has, by the offsets that they are named after, ascending."""

    __slots__ = ("directory", "offsets")

    def __init__(self, directory: str, offsets: list[int]) -> None:
        self.directory = directory
        self.offsets = offsets

    def path(self, offset: int) -> str:
        return f"{self.directory}/{offset:020d}{SNAPSHOT}"

    @property
    def latest(self) -> int:
        return self.offsets[-1] if self.offsets else NO_OFFSET

    def take(self, states: ProducerStates, offset: int) -> None:
        """Write down the producers as of an offset.

        The file may be synced later: without it, or with a part of it, an older one is used.
        """
        files.write(self.path(offset), encode(states.entries.values()))
        self.offsets.append(offset)

    def load(self) -> ProducerStates | None:
        """Return the producers of the newest valid snapshot; remove invalid ones."""
        while self.offsets:
            offset = self.offsets[-1]
            try:
                producers = decode(files.read(self.path(offset)))
            except (CorruptSnapshot, FileNotFoundError) as error:
                _log.warning(
                    "producer snapshot not usable",
                    extra={"path": self.path(offset), "error": str(error)},
                )
                self.drop_from(offset)
                continue
            states = ProducerStates(offset)
            states.load(producers)
            return states
        return None

    def drop_from(self, offset: int) -> None:
        """Remove the snapshots at and after an offset."""
        while self.offsets and self.offsets[-1] >= offset:
            files.unlink_if_there(self.path(self.offsets.pop()))

    def delete_later(self, offset: int, deletions: Deletions, delay_ms: int) -> None:
        """Remove the snapshot of a deleted segment."""
        if offset in self.offsets:
            self.offsets.remove(offset)
            path = self.path(offset)
            if files.rename_if_there(path, path + DELETED):
                deletions.add(path + DELETED, delay_ms)


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
        raise CorruptSnapshot(f"{len(content)} bytes are not a producer snapshot") from None
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
