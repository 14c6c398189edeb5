"""The options of `format("headrace")`: the stock connector's spellings, and a few of our own.

Names are case-insensitive, as Spark's are. What is given twice, is not known or cannot be is
refused by name; properties of the client (`kafka.*`) are passed on, and never shown.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from headrace.spark.option_names import (
    CLIENT_PREFIX,
    PASSED_OVER,
    Side,
    given_properties,
    option_complaint,
    property_complaint,
)
from headrace.spark.refuge import OPTION, Refuge
from headrace.spark.source.errors import InvalidOption
from headrace.spark.source.offsets import (
    BY_TIMESTAMP,
    EARLIEST,
    LATEST,
    Positions,
    TopicPartition,
    parse_numbers,
    parse_partitions,
)
from headrace.spark.topic_patterns import is_like, pattern_complaint

SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
STREAM_OPTIONS = (
    *("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp"),
    *("startingOffsetsByTimestampStrategy", "maxOffsetsPerTrigger", "minOffsetsPerTrigger"),
    *("maxTriggerDelay", "maxBytesPerTrigger", "minPartitions", "maxRecordsPerPartition"),
    *("failOnDataLoss", "includeHeaders", "columns", "metadataPrefix", "keepPayloads", "group"),
    *("startsLocation", "message", "delimiter", "sep", "header", "nullValue", "escape"),
    "recursiveFieldMaxDepth",
    *("schema.registry.url", "schema.registry.subject", "schema.registry.basic.auth.user.info"),
)
"""What a stream over given topics may be told, besides client properties and its payload."""
ENDS = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
PUSH_FILTERS = "pushFilters"
_TIMESTAMP_MS_MAX = (1 << 63) - 1
_OPTIONS = (*SUBSCRIPTIONS, *STREAM_OPTIONS, *ENDS, PUSH_FILTERS, "format", "schema", OPTION)


class Unmatched(Enum):
    """What a starting timestamp means where no record is as young."""

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Subscription:
    """Which topics and partitions are read: exactly one of the three is set."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    def names(self) -> tuple[str, ...] | None:
        """The topics to ask the cluster about; None for all, out of which the pattern chooses."""
        if self.pattern is not None:
            return None
        return self.topics or tuple(sorted({place.topic for place in self.partitions}))

    def takes(self, place: TopicPartition) -> bool:
        """Whether a partition is among those that are read."""
        if self.pattern is not None:
            return is_like(self.pattern, place.topic)
        return place in self.partitions if self.partitions else place.topic in self.topics


@dataclass(frozen=True, slots=True)
class Bound:
    """Where reading starts or ends: an offset everywhere, offsets by partition, or times."""

    option: str
    everywhere: int | None = None
    """EARLIEST, or LATEST."""
    offsets: Positions | None = None
    timestamp_ms: int | None = None
    timestamps_ms: Positions | None = None
    unmatched: Unmatched = Unmatched.LATEST

    @property
    def moves_on(self) -> bool:
        """Whether it is a later offset when it is asked for later."""
        return LATEST in (self.everywhere, *(self.offsets or {}).values())


@dataclass(frozen=True, slots=True)
class RowOptions:
    """What rows look like, whoever reads them."""

    columns: tuple[str, ...] = ()
    """The columns that are built; empty for all."""
    has_headers: bool = False
    metadata_prefix: str = ""
    """Goes before topic, partition and the like, where a payload has columns of these names."""
    keeps_payloads: bool = False
    """Whether decoded rows have their bytes too, and not only those that could not be decoded."""
    refuge: Refuge | None = None
    """Where records go that could not be decoded; None makes rows of them."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """All that a reader is told."""

    properties: Mapping[str, str] = field(repr=False)
    """The client's, without the prefix; they may hold passwords."""
    subscription: Subscription
    start: Bound
    end: Bound
    rows_max: int | None = None
    rows_min: int | None = None
    delay_s_max: float = 900.0
    """How long `rows_min` may hold a batch back."""
    bytes_max: int | None = None
    tasks_min: int | None = None
    task_rows_max: int | None = None
    fails_on_data_loss: bool = True
    rows: RowOptions = RowOptions()
    starts_location: str | None = None
    group: str | None = None
    pushes_filters: bool = False
    """Whether Spark's filters limit what is read: for who asks each loaded frame one question."""


def parse(options: Mapping[str, str], *, is_streaming: bool) -> SourceOptions:
    """What was given, checked."""
    given = {name.lower(): value for name, value in options.items()}
    if "segments" in given:
        raise InvalidOption(
            "segments is not offered: brokers send files as they are, so that reading them"
            " directly gains next to nothing, and passes by their access rules"
        )
    _refuse_unknown(given)
    reader = _Reader(given)
    return SourceOptions(
        properties=client_properties(given),
        subscription=_subscription(reader),
        start=_start(reader, is_streaming=is_streaming),
        end=_end(reader, is_streaming=is_streaming),
        rows_max=reader.positive("maxOffsetsPerTrigger"),
        rows_min=reader.positive("minOffsetsPerTrigger"),
        delay_s_max=reader.duration_s("maxTriggerDelay", 900.0),
        bytes_max=reader.positive("maxBytesPerTrigger"),
        tasks_min=reader.positive("minPartitions"),
        task_rows_max=reader.positive("maxRecordsPerPartition"),
        fails_on_data_loss=reader.flag("failOnDataLoss", default=True),
        rows=parse_rows(given),
        starts_location=reader.text("startsLocation"),
        group=_group(reader),
        pushes_filters=reader.flag(PUSH_FILTERS),
    )


def check(options: Mapping[str, str]) -> None:
    """Refuse what is wrong for a batch and for a stream alike.

    So it is told by `load()`: what a reader refuses is told by the query, and by that of a stream
    in the midst of its plans.
    """
    of_batch, of_stream = (_refusal(options, is_streaming=one) for one in (False, True))
    if of_batch is not None and str(of_batch) == str(of_stream):
        raise of_batch


def _refusal(options: Mapping[str, str], *, is_streaming: bool) -> InvalidOption | None:
    try:
        parse(options, is_streaming=is_streaming)
    except InvalidOption as error:
        return error
    return None


def _refuse_unknown(given: Mapping[str, str]) -> None:
    for name in given.keys() - PASSED_OVER:
        if not name.startswith(CLIENT_PREFIX) and (wrong := option_complaint(name, _OPTIONS)):
            raise InvalidOption(wrong)


def _group(reader: "_Reader") -> str | None:
    """The stock connector's users say it by the client's property."""
    ours, clients = reader.text("group"), reader.text("kafka.group.id")
    if ours and clients and ours != clients:
        raise InvalidOption(
            f"group is {ours!r} and kafka.group.id {clients!r}: they mean the same, give one"
        )
    return ours or clients


class _Reader:
    """The options by name, each read as what it should be."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def text(self, name: str) -> str | None:
        value = self._given.get(name.lower())
        return None if value is None else value.strip()

    def words(self, name: str) -> tuple[str, ...]:
        text = self.text(name)
        return tuple(word for word in map(str.strip, (text or "").split(",")) if word)

    def flag(self, name: str, *, default: bool = False) -> bool:
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise InvalidOption(f"{name} is {text!r}; it must be true or false")
        return text.lower() == "true"

    def positive(self, name: str) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        if not text.isdigit() or not int(text):
            raise InvalidOption(f"{name} is {text!r}; it must be a whole number above 0")
        return int(text)

    def duration_s(self, name: str, default_s: float) -> float:
        """Such as `15m` or `30s`."""
        text = self.text(name)
        if text is None:
            return default_s
        found = re.fullmatch(r"(\d+)\s*(ms|s|m|min|h|d)", text.lower())
        if found is None:
            raise InvalidOption(f"{name} is {text!r}; it must be a duration such as 30s or 15m")
        unit_s = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
        return int(found[1]) * unit_s[found[2]]

    def timestamp_ms(self, name: str) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        if not text.isdigit() or int(text) > _TIMESTAMP_MS_MAX:
            raise InvalidOption(f"{name} is {text!r}; it must be milliseconds since 1970")
        return int(text)

    def timestamps_ms(self, name: str) -> Positions | None:
        """Below 0 are Kafka's codes for offsets: -3, say, is where the latest record is."""
        found = self.numbers(name)
        for place, at_ms in (found or {}).items():
            if not 0 <= at_ms <= _TIMESTAMP_MS_MAX:
                raise InvalidOption(
                    f"{name} has {at_ms} for {place}; times are milliseconds since 1970, and the"
                    f" earliest and latest offset are said by {name.removesuffix(BY_TIMESTAMP)}"
                )
        return found

    def numbers(self, name: str) -> Positions | None:
        text = self.text(name)
        return None if text is None else parse_numbers(name, text)


def parse_rows(options: Mapping[str, str]) -> RowOptions:
    """The part that decides the schema: it is asked for before it is known who reads."""
    reader = _Reader({name.lower(): value for name, value in options.items()})
    return RowOptions(
        columns=reader.words("columns"),
        has_headers=reader.flag("includeHeaders", default=False),
        metadata_prefix=reader.text("metadataPrefix") or "",
        keeps_payloads=reader.flag("keepPayloads", default=False),
        refuge=None if (refuge := reader.text(OPTION)) is None else Refuge.from_option(refuge),
    )


def client_properties(options: Mapping[str, str]) -> dict[str, str]:
    """The properties of the client, without the prefix."""
    properties = given_properties(options)
    if not properties.get("bootstrap.servers", "").strip():
        raise InvalidOption("kafka.bootstrap.servers is missing; name brokers as host:port")
    for name in properties:
        if wrong := property_complaint(name, Side.SOURCE):
            raise InvalidOption(wrong)
    return properties


def _subscription(reader: _Reader) -> Subscription:
    found = [name for name in SUBSCRIPTIONS if reader.text(name) is not None]
    if len(found) != 1:
        told = f"{' and '.join(found)} are given" if found else "none is given"
        raise InvalidOption(f"one of {', '.join(SUBSCRIPTIONS)} says what is read; {told}")
    name = found[0]
    text = reader.text(name) or ""
    if name == "assign":
        return Subscription(partitions=parse_partitions(name, text))
    if name == "subscribe":
        topics = reader.words(name)
        if not topics:
            raise InvalidOption("subscribe names no topic; give one, or several with commas")
        return Subscription(topics=tuple(sorted(set(topics))))
    if (wrong := pattern_complaint(text)) is not None:
        raise InvalidOption(f"subscribePattern {text!r} {wrong}")
    return Subscription(pattern=text)


def _start(reader: _Reader, *, is_streaming: bool) -> Bound:
    strategy = reader.text("startingOffsetsByTimestampStrategy") or Unmatched.ERROR.value
    try:
        unmatched = Unmatched(strategy.lower())
    except ValueError:
        raise InvalidOption(
            f"startingOffsetsByTimestampStrategy is {strategy!r}; it must be error or latest"
        ) from None
    bound = _bound(reader, "starting", "latest" if is_streaming else "earliest", unmatched)
    if not is_streaming:
        offsets = bound.offsets or {}
        if bound.everywhere == LATEST or LATEST in offsets.values():
            raise InvalidOption("startingOffsets cannot be latest in a batch: nothing would come")
    return bound


def _end(reader: _Reader, *, is_streaming: bool) -> Bound:
    if is_streaming:
        for name in ENDS:
            if reader.text(name) is not None:
                raise InvalidOption(f"{name} is for batches; a stream has no end")
    bound = _bound(reader, "ending", "latest", Unmatched.LATEST)
    if bound.everywhere == EARLIEST or EARLIEST in (bound.offsets or {}).values():
        raise InvalidOption("endingOffsets cannot be earliest: nothing would come")
    return bound


def _bound(reader: _Reader, side: str, default: str, unmatched: Unmatched) -> Bound:
    """The stock connector's order: one time for all, times by partition, then offsets."""
    single, several = f"{side}Timestamp", f"{side}OffsetsByTimestamp"
    timestamp_ms = reader.timestamp_ms(single)
    if timestamp_ms is not None:
        return Bound(single, timestamp_ms=timestamp_ms, unmatched=unmatched)
    timestamps_ms = reader.timestamps_ms(several)
    if timestamps_ms is not None:
        return Bound(several, timestamps_ms=timestamps_ms, unmatched=unmatched)
    option = f"{side}Offsets"
    text = reader.text(option) or default
    everywhere = {"earliest": EARLIEST, "latest": LATEST}.get(text.lower())
    if everywhere is not None:
        return Bound(option, everywhere=everywhere)
    offsets = parse_numbers(option, text)
    if any(offset < EARLIEST for offset in offsets.values()):
        raise InvalidOption(f"{option} has an offset below -2 (the earliest)")
    return Bound(option, offsets=offsets)
