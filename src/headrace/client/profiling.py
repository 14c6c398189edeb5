"""Takes a sample of a topic's records and measures it. Reads, and leaves no trace."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Message

from headrace.client.admin import Admin
from headrace.client.profiles import Profile, Sampled, profile_of
from headrace.client.reader import RecordReader, Start
from headrace.errors import HeadraceError, OffsetOutOfRange
from headrace.protocol.batches import read_header
from headrace.protocol.compression import Codec

IDLE_S_MAX = 10.0
"""How long a partition may send nothing before the sample is taken as it is."""
SECONDS_MAX = 60.0
RECORDS_MAX = 1_000_000
BATCHES_LOOKED_AT = 8
COMPRESSED_BYTES_MAX = 1 << 20


class NothingToMeasure(HeadraceError):
    """There are no records to take a sample of."""


def profile_topic(
    bootstrap: str,
    topic: str,
    properties: Mapping[str, str],
    *,
    records: int,
    seconds: float | None = None,
    now_ms: int | None = None,
) -> Profile:
    """Measure the last records of a topic, or those of the last seconds."""
    reader = RecordReader(bootstrap, topic, {"isolation.level": "read_committed", **properties})
    try:
        partitions = reader.partitions()
        bounds = {partition: reader.bounds(partition) for partition in partitions}
        if seconds is None:
            start = Start(offset=-max(1, -(-records // len(partitions))))
        else:
            now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
            start = Start(timestamp_ms=now_ms - int(seconds * 1000))
        reader.assign(start, partitions)
        messages = read_to_end(reader, {part: end for part, (_, end) in bounds.items()})
    finally:
        reader.close()
    if not messages:
        when = "" if seconds is None else f" of the last {seconds:g} s"
        raise NothingToMeasure(f"topic {topic} has no records{when} to measure")
    return profile_of(
        topic,
        [sampled(message) for message in messages],
        {partition: end - first for partition, (first, end) in bounds.items()},
        codecs_of(bootstrap, topic, properties, messages),
        zstd_ratio([message.value() or b"" for message in messages]),
    )


def read_to_end(reader: RecordReader, ends: Mapping[int, int]) -> list[Message]:
    """The records up to the ends that were seen first; a topic that grows is not chased."""
    found: list[Message] = []
    unfinished = set(ends)
    began = silent_since = time.monotonic()
    while unfinished and not reader.is_at_end and len(found) < RECORDS_MAX:
        for message in reader.read():
            partition, offset = message.partition() or 0, message.offset() or 0
            silent_since = time.monotonic()
            if offset < ends[partition]:
                found.append(message)
            if offset + 1 >= ends[partition]:
                unfinished.discard(partition)
        now = time.monotonic()
        if now - silent_since > IDLE_S_MAX or now - began > SECONDS_MAX:
            break
    return found


def sampled(message: Message) -> Sampled:
    headers: Any = message.headers() or ()
    return Sampled(
        message.partition() or 0,
        max(message.timestamp()[1], 0),
        message.key(),
        message.value(),
        sum(len(name) + len(value or b"") for name, value in headers),
    )


def codecs_of(
    bootstrap: str, topic: str, properties: Mapping[str, str], messages: Sequence[Message]
) -> list[str]:
    """The compression of some batches, as the broker stores them."""
    step = max(1, len(messages) // BATCHES_LOOKED_AT)
    found = []
    with Admin(bootstrap, dict(properties)) as admin:
        for message in messages[::step][:BATCHES_LOOKED_AT]:
            try:
                batch = admin.partitions.batch_at(
                    topic, message.partition() or 0, message.offset() or 0
                )
            except OffsetOutOfRange:
                continue  # Retention was quicker.
            codec = read_header(batch).codec
            found.append(Codec(codec).name.lower() if codec <= Codec.ZSTD else "unknown")
    return found


def zstd_ratio(values: Sequence[bytes]) -> float | None:
    """How many times smaller the first values become together, as in a batch."""
    import cramjam

    sample = b"".join(values)[:COMPRESSED_BYTES_MAX]
    if not sample:
        return None
    return len(sample) / len(bytes(cramjam.zstd.compress(sample, 3)))
