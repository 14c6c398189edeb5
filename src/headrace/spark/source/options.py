"""The options of `format("headrace")`: those of the stock connector, and some further ones.

Names are case-insensitive. Unknown, contradictory and invalid options are rejected by name. Client
properties (`kafka.*`) are passed on, and never shown.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from headrace.protocol.topic_partition import TopicPartition
from headrace.spark.option_names import (
    CLIENT_PREFIX,
    PASSED_OVER,
    REGISTRY_OPTIONS,
    Side,
    given_properties,
    option_complaint,
    property_complaint,
)
from headrace.spark.option_values import OptionValues
from headrace.spark.side_output import OPTION, SideOutput
from headrace.spark.source.errors import InvalidOption
from headrace.spark.source.offsets import (
    BY_TIMESTAMP,
    EARLIEST,
    LATEST,
    Positions,
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
    *REGISTRY_OPTIONS,
)
"""The options of a stream over given topics, apart from client properties and its payload."""
ENDS = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
PUSH_FILTERS = "pushFilters"
_TIMESTAMP_MS_MAX = (1 << 63) - 1
_OPTIONS = (*SUBSCRIPTIONS, *STREAM_OPTIONS, *ENDS, PUSH_FILTERS, "format", "schema", OPTION)


class Unmatched(Enum):
    """The result of a starting timestamp without a later record."""

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Subscription:
    """The topics and partitions to read; exactly one field is set."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    def names(self) -> tuple[str, ...] | None:
        """Return the topics for a metadata request; None for all, if there is a pattern."""
        if self.pattern is not None:
            return None
        return self.topics or tuple(sorted({place.topic for place in self.partitions}))

    def takes(self, place: TopicPartition) -> bool:
        """Return whether a partition is read."""
        if self.pattern is not None:
            return is_like(self.pattern, place.topic)
        return place in self.partitions if self.partitions else place.topic in self.topics


@dataclass(frozen=True, slots=True)
class Bound:
    """The start or end of reading: one offset for all, offsets by partition, or times."""

    option: str
    everywhere: int | None = None
    """EARLIEST or LATEST."""
    offsets: Positions | None = None
    timestamp_ms: int | None = None
    timestamps_ms: Positions | None = None
    unmatched: Unmatched = Unmatched.LATEST

    @property
    def moves_on(self) -> bool:
        """Return whether a later resolution may give later offsets."""
        return LATEST in (self.everywhere, *(self.offsets or {}).values())


@dataclass(frozen=True, slots=True)
class RowOptions:
    """The options of rows."""

    columns: tuple[str, ...] = ()
    """The columns of rows; empty for all."""
    has_headers: bool = False
    metadata_prefix: str = ""
    """The prefix of topic, partition and the like, for payloads with columns of these names."""
    keeps_payloads: bool = False
    """Keep the bytes of all rows, not only of those that could not be decoded."""
    side_output: SideOutput | None = None
    """The destination of records that cannot be decoded; None makes rows of them."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The parsed options of a values."""

    properties: Mapping[str, str] = field(repr=False)
    """Client properties without the prefix, which may contain passwords."""
    subscription: Subscription
    start: Bound
    end: Bound
    rows_max: int | None = None
    rows_min: int | None = None
    delay_s_max: float = 900.0
    """The maximum delay of a batch by `rows_min`."""
    bytes_max: int | None = None
    tasks_min: int | None = None
    task_rows_max: int | None = None
    fails_on_data_loss: bool = True
    rows: RowOptions = RowOptions()
    starts_location: str | None = None
    group: str | None = None
    pushes_filters: bool = False
    """Push down Spark's filters, for frames with a single query."""


def parse(options: Mapping[str, str], *, is_streaming: bool) -> SourceOptions:
    """Parse and check the options."""
    given = {name.lower(): value for name, value in options.items()}
    if "segments" in given:
        raise InvalidOption(
            "the option segments is not supported: brokers send segment files unchanged, so reading"
            " them directly saves little, and bypasses access control"
        )
    _refuse_unknown(given)
    values = OptionValues(given, InvalidOption)
    return SourceOptions(
        properties=client_properties(given),
        subscription=_subscription(values),
        start=_start(values, is_streaming=is_streaming),
        end=_end(values, is_streaming=is_streaming),
        rows_max=values.number("maxOffsetsPerTrigger", 1),
        rows_min=values.number("minOffsetsPerTrigger", 1),
        delay_s_max=_duration_s(values, "maxTriggerDelay", 900.0),
        bytes_max=values.number("maxBytesPerTrigger", 1),
        tasks_min=values.number("minPartitions", 1),
        task_rows_max=values.number("maxRecordsPerPartition", 1),
        fails_on_data_loss=values.flag("failOnDataLoss", default=True),
        rows=parse_rows(given),
        starts_location=values.text("startsLocation"),
        group=_group(values),
        pushes_filters=values.flag(PUSH_FILTERS),
    )


def check(options: Mapping[str, str]) -> None:
    """Reject options that are invalid for batches and streams alike.

    So `load()` raises the error, which otherwise comes from the query, among plans of Spark.
    """
    of_batch, of_stream = (_error(options, is_streaming=one) for one in (False, True))
    if of_batch is not None and str(of_batch) == str(of_stream):
        raise of_batch


def _error(options: Mapping[str, str], *, is_streaming: bool) -> InvalidOption | None:
    try:
        parse(options, is_streaming=is_streaming)
    except InvalidOption as error:
        return error
    return None


def _refuse_unknown(given: Mapping[str, str]) -> None:
    for name in given.keys() - PASSED_OVER:
        if not name.startswith(CLIENT_PREFIX) and (wrong := option_complaint(name, _OPTIONS)):
            raise InvalidOption(wrong)


def _group(values: OptionValues) -> str | None:
    """Return the group, which users of the stock connector give as a client property."""
    ours, clients = values.text("group"), values.text("kafka.group.id")
    if ours and clients and ours != clients:
        raise InvalidOption(
            f"group is {ours!r} and kafka.group.id is {clients!r}: they are the same option, give"
            " one of them"
        )
    return ours or clients


def _duration_s(values: OptionValues, name: str, default_s: float) -> float:
    """Parse a duration such as `15m` or `30s`."""
    text = values.text(name)
    if text is None:
        return default_s
    found = re.fullmatch(r"(\d+)\s*(ms|s|m|min|h|d)", text.lower())
    if found is None:
        raise InvalidOption(f"{name} is {text!r}; it must be a duration such as 30s or 15m")
    unit_s = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
    return int(found[1]) * unit_s[found[2]]


def _timestamp_ms(values: OptionValues, name: str) -> int | None:
    text = values.text(name)
    if text is None:
        return None
    if not text.isdigit() or int(text) > _TIMESTAMP_MS_MAX:
        raise InvalidOption(f"{name} is {text!r}; it must be milliseconds since 1970")
    return int(text)


def _timestamps_ms(values: OptionValues, name: str) -> Positions | None:
    """Parse times; numbers below 0, Kafka's codes for offsets, are rejected."""
    text = values.text(name)
    found = None if text is None else parse_numbers(name, text)
    for place, at_ms in (found or {}).items():
        if not 0 <= at_ms <= _TIMESTAMP_MS_MAX:
            raise InvalidOption(
                f"{name} has {at_ms} for {place}; times are milliseconds since 1970. Use"
                f" {name.removesuffix(BY_TIMESTAMP)} for the earliest and latest offset"
            )
    return found


def parse_rows(options: Mapping[str, str]) -> RowOptions:
    """Parse the options of rows, which decide the schema before a reader is chosen."""
    values = OptionValues(options, InvalidOption)
    return RowOptions(
        columns=values.words("columns"),
        has_headers=values.flag("includeHeaders"),
        metadata_prefix=values.text("metadataPrefix") or "",
        keeps_payloads=values.flag("keepPayloads"),
        side_output=None
        if (side_output := values.text(OPTION)) is None
        else SideOutput.from_option(side_output),
    )


def client_properties(options: Mapping[str, str]) -> dict[str, str]:
    """Check the client properties, and return them without the prefix."""
    properties = given_properties(options)
    if not properties.get("bootstrap.servers", "").strip():
        raise InvalidOption("kafka.bootstrap.servers is missing; name brokers as host:port")
    for name in properties:
        if wrong := property_complaint(name, Side.SOURCE):
            raise InvalidOption(wrong)
    return properties


def _subscription(values: OptionValues) -> Subscription:
    found = [name for name in SUBSCRIPTIONS if values.text(name) is not None]
    if len(found) != 1:
        given = f"{' and '.join(found)} are given" if found else "none is given"
        raise InvalidOption(f"exactly one of {', '.join(SUBSCRIPTIONS)} is needed; {given}")
    name = found[0]
    text = values.text(name) or ""
    if name == "assign":
        return Subscription(partitions=parse_partitions(name, text))
    if name == "subscribe":
        topics = values.words(name)
        if not topics:
            raise InvalidOption("subscribe names no topic; give one, or several with commas")
        return Subscription(topics=tuple(sorted(set(topics))))
    if (wrong := pattern_complaint(text)) is not None:
        raise InvalidOption(f"subscribePattern {text!r} {wrong}")
    return Subscription(pattern=text)


def _start(values: OptionValues, *, is_streaming: bool) -> Bound:
    strategy = values.text("startingOffsetsByTimestampStrategy") or Unmatched.ERROR.value
    try:
        unmatched = Unmatched(strategy.lower())
    except ValueError:
        raise InvalidOption(
            f"startingOffsetsByTimestampStrategy is {strategy!r}; it must be error or latest"
        ) from None
    bound = _bound(values, "starting", "latest" if is_streaming else "earliest", unmatched)
    if not is_streaming:
        offsets = bound.offsets or {}
        if bound.everywhere == LATEST or LATEST in offsets.values():
            raise InvalidOption("startingOffsets cannot be latest in a batch, which would be empty")
    return bound


def _end(values: OptionValues, *, is_streaming: bool) -> Bound:
    if is_streaming:
        for name in ENDS:
            if values.text(name) is not None:
                raise InvalidOption(f"{name} is for batches only")
    bound = _bound(values, "ending", "latest", Unmatched.LATEST)
    if bound.everywhere == EARLIEST or EARLIEST in (bound.offsets or {}).values():
        raise InvalidOption("endingOffsets cannot be earliest: the batch would be empty")
    return bound


def _bound(values: OptionValues, side: str, default: str, unmatched: Unmatched) -> Bound:
    """Parse a bound, in the stock connector's order: one time, times by partition, offsets."""
    single, several = f"{side}Timestamp", f"{side}OffsetsByTimestamp"
    timestamp_ms = _timestamp_ms(values, single)
    if timestamp_ms is not None:
        return Bound(single, timestamp_ms=timestamp_ms, unmatched=unmatched)
    timestamps_ms = _timestamps_ms(values, several)
    if timestamps_ms is not None:
        return Bound(several, timestamps_ms=timestamps_ms, unmatched=unmatched)
    option = f"{side}Offsets"
    text = values.text(option) or default
    everywhere = {"earliest": EARLIEST, "latest": LATEST}.get(text.lower())
    if everywhere is not None:
        return Bound(option, everywhere=everywhere)
    offsets = parse_numbers(option, text)
    if any(offset < EARLIEST for offset in offsets.values()):
        raise InvalidOption(f"{option} has an offset below -2 (the earliest)")
    return Bound(option, offsets=offsets)
