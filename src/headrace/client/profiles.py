"""Profiles of a topic, computed from a sample of its records (ARC-6).

A profile has velocity, sizes, frequency, format, keys, skew and heterogeneity, and suggests a
source for a pipeline.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from headrace.client.payload_shapes import (
    STRUCTURE,
    PayloadKind,
    PayloadShape,
    common_kind,
    csv_ddl,
    ddl_of_fields,
    delimiter_of,
    registered_format,
    shape_of,
    types_of,
)

TOP_KEYS = 5
KEY_TEXT_MAX = 40
SHAPES_LOOKED_AT = 2_000
"""Number of parsed payloads per sample."""

ORIGIN = ("topic", "partition", "offset", "timestamp")
"""The columns with the origin of a record in every row."""

REGULAR_BELOW = 0.5
BURSTY_ABOVE = 1.5
"""Variation of the gaps: 0 is a clock, 1 is chance, more is bursts."""


class Sampled(msgspec.Struct, frozen=True, gc=False):
    """The measured parts of one record."""

    partition: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    header_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        return len(self.key or b"") + len(self.value or b"") + self.header_bytes


class Velocity(msgspec.Struct, frozen=True):
    """Rates per second by the records' timestamps; None if they are unknown."""

    records_per_s: float | None
    bytes_per_s: float | None
    megabits_per_s: float | None
    span_s: float


class Sizes(msgspec.Struct, frozen=True):
    """Sizes of whole records, in bytes."""

    min: int
    p50: int
    p99: int
    max: int
    mean: float


class Frequency(msgspec.Struct, frozen=True):
    """Gaps between records, in milliseconds."""

    pattern: str
    """regular, irregular, bursty, or unknown if all records have the same time."""
    gap_ms_p50: float
    gap_ms_p99: float
    gap_ms_max: float
    variation: float | None


class FormatGuess(msgspec.Struct, frozen=True):
    """The guessed format of payloads."""

    structure: str
    kind: str
    share: float
    schema: str | None
    """Spark's DDL of JSON or CSV."""
    detail: str = ""
    kinds: dict[str, float] = {}
    registered: str = ""
    """The guessed format of payloads with a schema id: avro, json or protobuf."""
    metadata_prefix: str = ""
    """Prefix of `topic`, `offset` and similar columns if payloads have fields of these names."""


class Heterogeneity(msgspec.Struct, frozen=True):
    """The share of the most frequent shape, and the number of shapes."""

    main_shape_share: float
    shapes: int


class KeySkew(msgspec.Struct, frozen=True):
    """The distribution of records over keys and partitions."""

    distinct: int
    null_share: float
    top: list[tuple[str, float]]
    partition_records: dict[int, int]
    partition_skew: float | None
    """Records of the fullest partition divided by the mean."""


class Profile(msgspec.Struct, frozen=True):
    """The profile of a topic."""

    topic: str
    records: int
    velocity: Velocity
    size: Sizes
    frequency: Frequency
    format: FormatGuess
    heterogeneity: Heterogeneity
    keys: KeySkew
    compression: dict[str, int]
    """Number of sampled batches by compression."""
    zstd_ratio: float | None
    """Compression ratio of a sample of the values with zstd."""
    suggestion: str


def profile_of(
    topic: str,
    records: Sequence[Sampled],
    partition_records: Mapping[int, int],
    codecs: Sequence[str],
    zstd_ratio: float | None,
) -> Profile:
    """Compute the profile of a sample with at least one record."""
    shapes = [shape_of(record.value) for record in evenly(records, SHAPES_LOOKED_AT)]
    guess = format_of(shapes, [record.value for record in evenly(records, SHAPES_LOOKED_AT)])
    return Profile(
        topic=topic,
        records=len(records),
        velocity=velocity_of(records),
        size=sizes_of([record.size_bytes for record in records]),
        frequency=frequency_of([record.timestamp_ms for record in records]),
        format=guess,
        heterogeneity=heterogeneity_of(shapes),
        keys=keys_of([record.key for record in records], partition_records),
        compression=dict(Counter(codecs)),
        zstd_ratio=zstd_ratio,
        suggestion=suggestion_of(topic, guess),
    )


def evenly(records: Sequence[Sampled], count_max: int) -> Sequence[Sampled]:
    """Return at most `count_max` records, spread evenly over the sample."""
    step = max(1, math.ceil(len(records) / count_max))
    return records[::step]


def velocity_of(records: Sequence[Sampled]) -> Velocity:
    """Add up the rates of partitions, each over its own span, because samples differ in length."""
    by_partition: dict[int, list[Sampled]] = {}
    for record in records:
        by_partition.setdefault(record.partition, []).append(record)
    rate = volume = 0.0
    is_known = False
    for part in by_partition.values():
        times = [record.timestamp_ms for record in part]
        span_s = (max(times) - min(times)) / 1000
        if span_s > 0:
            # n records have n - 1 gaps between them.
            rate += (len(part) - 1) / span_s
            mean_bytes = sum(record.size_bytes for record in part) / len(part)
            volume += mean_bytes * (len(part) - 1) / span_s
            is_known = True
    times = [record.timestamp_ms for record in records]
    return Velocity(
        records_per_s=rate if is_known else None,
        bytes_per_s=volume if is_known else None,
        megabits_per_s=volume * 8 / 1e6 if is_known else None,
        span_s=(max(times) - min(times)) / 1000,
    )


def sizes_of(sizes: Iterable[int]) -> Sizes:
    ordered = sorted(sizes)
    return Sizes(
        min=ordered[0],
        p50=ordered[rank(len(ordered), 0.5)],
        p99=ordered[rank(len(ordered), 0.99)],
        max=ordered[-1],
        mean=sum(ordered) / len(ordered),
    )


def rank(count: int, share: float) -> int:
    """Return the index of a quantile among `count` ordered values."""
    return min(count - 1, math.ceil(count * share) - 1)


def frequency_of(times_ms: Sequence[int]) -> Frequency:
    ordered = sorted(times_ms)
    gaps = sorted(later - earlier for earlier, later in pairwise(ordered))
    if not gaps or not gaps[-1]:
        return Frequency("unknown", 0, 0, 0, None)
    mean = sum(gaps) / len(gaps)
    variation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) / mean
    pattern = "irregular"
    if variation < REGULAR_BELOW:
        pattern = "regular"
    elif variation > BURSTY_ABOVE:
        pattern = "bursty"
    return Frequency(
        pattern,
        gap_ms_p50=gaps[rank(len(gaps), 0.5)],
        gap_ms_p99=gaps[rank(len(gaps), 0.99)],
        gap_ms_max=gaps[-1],
        variation=variation,
    )


def format_of(shapes: Sequence[PayloadShape], values: Sequence[bytes | None]) -> FormatGuess:
    """Return the most frequent format, and the common columns."""
    kind = common_kind(shapes)
    counted = Counter(shape.kind for shape in shapes)
    schema = None
    detail = registered = prefix = ""
    if kind is PayloadKind.JSON:
        types = types_of([shape.fields for shape in shapes if shape.fields is not None])
        schema = ddl_of_fields(types) or None
        prefix = metadata_prefix(types)
    elif kind is PayloadKind.WIRE_FORMAT:
        ids = Counter(shape.detail for shape in shapes if shape.kind is kind)
        detail = ", ".join(name for name, _ in ids.most_common(TOP_KEYS))
        registered = registered_format(
            value or b"" for shape, value in zip(shapes, values, strict=True) if shape.kind is kind
        )
    elif kind is PayloadKind.CSV:
        kind, schema, detail = _csv_guess(shapes, values)
    return FormatGuess(
        structure=STRUCTURE.get(kind, "unknown"),
        kind=kind.value,
        share=counted[kind] / len(shapes),
        schema=schema,
        detail=detail,
        kinds={found.value: count / len(shapes) for found, count in counted.most_common()},
        registered=registered,
        metadata_prefix=prefix,
    )


def metadata_prefix(columns: Iterable[str]) -> str:
    """Return a prefix that separates the columns of the origin from those of the payload."""
    taken = {column.lower() for column in columns}
    prefix = ""
    while not taken.isdisjoint(prefix + name for name in ORIGIN):
        prefix = f"_{prefix}" if prefix else "kafka_"
    return prefix


def _csv_guess(
    shapes: Sequence[PayloadShape], values: Sequence[bytes | None]
) -> tuple[PayloadKind, str | None, str]:
    """Return CSV if all lines have the same number of fields by one delimiter, or text."""
    lines = [
        (value or b"").decode("utf-8").strip("\r\n")
        for shape, value in zip(shapes, values, strict=True)
        if shape.kind is PayloadKind.CSV
    ]
    delimiter = delimiter_of(lines)
    if delimiter is None:
        return PayloadKind.TEXT, None, ""
    return PayloadKind.CSV, csv_ddl(lines, delimiter), delimiter


def heterogeneity_of(shapes: Sequence[PayloadShape]) -> Heterogeneity:
    counted = Counter(
        (shape.kind, shape.detail) for shape in shapes if shape.kind is not PayloadKind.NULL
    )
    if not counted:
        return Heterogeneity(1.0, 0)
    return Heterogeneity(counted.most_common(1)[0][1] / counted.total(), len(counted))


def keys_of(keys: Sequence[bytes | None], partition_records: Mapping[int, int]) -> KeySkew:
    counted = Counter(key for key in keys if key is not None)
    total = sum(partition_records.values())
    return KeySkew(
        distinct=len(counted),
        null_share=1 - counted.total() / len(keys),
        top=[(key_text(key), count / len(keys)) for key, count in counted.most_common(TOP_KEYS)],
        partition_records=dict(partition_records),
        partition_skew=(
            max(partition_records.values()) * len(partition_records) / total if total else None
        ),
    )


def key_text(key: bytes) -> str:
    """Return a printable form of a key: text or hexadecimal."""
    try:
        text = key.decode("utf-8")
    except UnicodeDecodeError:
        text = f"0x{key.hex()}"
    if not text.isprintable():
        text = f"0x{key.hex()}"
    return text if len(text) <= KEY_TEXT_MAX else f"{text[:KEY_TEXT_MAX]}..."


def suggestion_of(topic: str, guess: FormatGuess) -> str:
    """Return a source for this topic in the form of pipeline.toml."""
    name = "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in topic)
    name = f"_{name}" if name[0].isdigit() else name
    lines = [f"[sources.{name}]", f"topic = {toml_text(topic)}"]
    options: dict[str, str] = {}
    match guess.kind:
        case PayloadKind.JSON.value if guess.schema:
            lines += ['format = "json"', f"schema = {toml_text(guess.schema)}"]
            if guess.metadata_prefix:
                options["metadataPrefix"] = guess.metadata_prefix
        case PayloadKind.CSV.value if guess.schema:
            lines += ['format = "csv"', f"schema = {toml_text(guess.schema)}"]
            if guess.detail != ",":
                options["delimiter"] = guess.detail
        case PayloadKind.WIRE_FORMAT.value:
            lines.append(f"format = {toml_text(guess.registered)}")
            options["schema.registry.url"] = "http://127.0.0.1:8081"
        case _:
            lines.append('format = "bytes"')
    if options:
        lines += ["", f"[sources.{name}.options]"]
        lines += [f"{toml_text(option)} = {toml_text(value)}" for option, value in options.items()]
    return "\n".join(lines) + "\n"


def toml_text(text: str) -> str:
    """Return a TOML string, whose escapes are JSON's except for one control character."""
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
