"""Options: the stock connector's spellings, and errors that name the option."""

import re
from contextlib import nullcontext

import pytest

from headrace.protocol.topic_partition import TopicPartition
from headrace.spark.source.errors import InvalidOption
from headrace.spark.source.offsets import EARLIEST, LATEST, check_same_partitions
from headrace.spark.source.options import Unmatched, check, parse, parse_rows

ORDERS = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "orders"}


def test_a_stream_begins_at_the_end_and_a_batch_at_the_beginning() -> None:
    assert parse(ORDERS, is_streaming=True).start.everywhere == LATEST
    assert parse(ORDERS, is_streaming=False).start.everywhere == EARLIEST
    assert parse(ORDERS, is_streaming=False).end.everywhere == LATEST


def test_names_are_taken_in_any_case() -> None:
    options = parse(
        {**ORDERS, "MAXOFFSETSPERTRIGGER": "7", "failondataloss": "FALSE"}, is_streaming=True
    )
    assert (options.rows_max, options.fails_on_data_loss) == (7, False)


def test_unknown_options_are_refused_except_those_of_other_programs() -> None:
    with pytest.raises(InvalidOption, match="did you mean maxOffsetsPerTrigger"):
        parse({**ORDERS, "maxOffsetPerTrigger": "7"}, is_streaming=True)
    with pytest.raises(InvalidOption, match="there is no option rows"):
        parse({**ORDERS, "rows": "7"}, is_streaming=True)
    others = {"path": "x", "groupIdPrefix": "y", "kafkaConsumer.pollTimeoutMs": "512"}
    assert parse({**ORDERS, **others}, is_streaming=True) == parse(ORDERS, is_streaming=True)


def test_offsets_by_partition_are_read() -> None:
    text = '{"orders": {"0": 12, "1": -2, "2": -1}}'
    bound = parse({**ORDERS, "startingOffsets": text}, is_streaming=True).start
    assert bound.offsets == {
        TopicPartition("orders", 0): 12,
        TopicPartition("orders", 1): EARLIEST,
        TopicPartition("orders", 2): LATEST,
    }


def test_one_time_for_all_comes_before_times_by_partition_and_these_before_offsets() -> None:
    times = {"startingOffsetsByTimestamp": '{"orders": {"0": 5}}', "startingOffsets": "earliest"}
    by_partition = parse({**ORDERS, **times}, is_streaming=True).start
    for_all = parse({**ORDERS, **times, "startingTimestamp": "9"}, is_streaming=True).start
    assert by_partition.timestamps_ms == {TopicPartition("orders", 0): 5}
    assert for_all.timestamp_ms == 9


def test_a_time_without_a_record_is_an_error_by_default() -> None:
    given = {**ORDERS, "startingTimestamp": "9"}
    strategy = {"startingOffsetsByTimestampStrategy": "latest"}
    assert parse(given, is_streaming=True).start.unmatched is Unmatched.ERROR
    assert parse({**given, **strategy}, is_streaming=True).start.unmatched is Unmatched.LATEST


def test_properties_of_the_client_lose_their_prefix_and_are_not_shown() -> None:
    options = parse({**ORDERS, "kafka.sasl.password": "secret"}, is_streaming=True)
    assert options.properties["sasl.password"] == "secret"
    assert "secret" not in repr(options)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"subscribe": "t"}, "kafka.bootstrap.servers is missing"),
        ({"kafka.bootstrap.servers": "h:1"}, "none is given"),
        ({**ORDERS, "subscribePattern": "o.*"}, "subscribe and subscribePattern are given"),
        ({**ORDERS, "startingOffsets": "{orders: 3}"}, "startingOffsets is"),
        ({**ORDERS, "startingOffsets": '{"orders": {"0": -3}}'}, "below -2"),
        ({**ORDERS, "startingTimestamp": "-1"}, "startingTimestamp is '-1'; it must be milli"),
        ({**ORDERS, "startingTimestamp": str(1 << 63)}, "it must be milliseconds since 1970"),
        (
            {**ORDERS, "startingOffsetsByTimestamp": '{"orders": {"0": 5, "1": -3}}'},
            "startingOffsetsByTimestamp has -3 for orders-1; times are milliseconds since 1970. Use"
            " startingOffsets for the earliest and latest offset",
        ),
        ({**ORDERS, "endingOffsets": "latest"}, "is for batches only"),
        ({**ORDERS, "maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger is '0'"),
        ({**ORDERS, "maxBytesPerTrigger": "1g"}, "maxBytesPerTrigger is '1g'"),
        ({**ORDERS, "failOnDataLoss": "maybe"}, "must be true or false"),
        ({**ORDERS, "kafka.auto.offset.reset": "earliest"}, "startingOffsets instead"),
        ({**ORDERS, "kafka.secuirty.protocol": "SSL"}, "did you mean kafka.security.protocol"),
        ({**ORDERS, "isolation.level": "read_committed"}, "are written kafka.isolation.level"),
        ({**ORDERS, "group": "a", "kafka.group.id": "b"}, "they are the same option, give one"),
        ({**ORDERS, "startingOffsetsByTimestampStrategy": "guess"}, "error or latest"),
        ({**ORDERS, "maxTriggerDelay": "soon"}, "a duration such as"),
        ({**ORDERS, "subscribe": " , "}, "names no topic"),
        ({"kafka.bootstrap.servers": "h:1", "assign": '{"t": []}'}, "assign is"),
        (
            {"kafka.bootstrap.servers": "h:1", "subscribePattern": "("},
            "not a valid regular expression",
        ),
        ({"kafka.bootstrap.servers": "h:1", "subscribePattern": " "}, "is empty"),
        ({**ORDERS, "segments": "/data"}, "segments"),
    ],
)
def test_invalid_options_are_refused_by_name(given: dict[str, str], error: str) -> None:
    with pytest.raises(InvalidOption, match=error.replace("(", r"\(")):
        parse(given, is_streaming=True)


@pytest.mark.parametrize(
    "option",
    ["startingOffsets", "startingOffsetsByTimestamp", "endingOffsets", "endingOffsetsByTimestamp"],
)
def test_the_example_of_a_refusal_is_not_refused_itself(option: str) -> None:
    with pytest.raises(InvalidOption) as refusal:
        parse({**ORDERS, option: "[1]"}, is_streaming=False)
    example = re.search(r"\{.*\}\}", str(refusal.value))
    assert example is not None
    assert parse({**ORDERS, option: example[0]}, is_streaming=False)


def test_codes_for_offsets_are_not_advised_for_times() -> None:
    given, read = [TopicPartition("orders", 0)], [TopicPartition("orders", 1)]
    with pytest.raises(InvalidOption, match="-2 is the earliest"):
        check_same_partitions("startingOffsets", given, read)
    with pytest.raises(InvalidOption, match=r"topics that are read$"):
        check_same_partitions("startingOffsetsByTimestamp", given, read)


@pytest.mark.parametrize(
    "given",
    [
        {"startingOffsets": "latest"},
        {"startingOffsets": '{"orders": {"0": -1}}'},
        {"endingOffsets": "earliest"},
        {"endingOffsets": '{"orders": {"0": -2}}'},
    ],
)
def test_an_empty_batch_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidOption, match="empty"):
        parse({**ORDERS, **given}, is_streaming=False)


@pytest.mark.parametrize(
    ("given", "is_refused"),
    [
        ({"maxOffsetPerTrigger": "5"}, True),
        ({"maxOffsetsPerTrigger": "five"}, True),
        ({"endingOffsets": "latest"}, False),
        ({"startingOffsets": "latest"}, False),
        ({"endingOffsets": "earliest"}, False),
        ({}, False),
    ],
)
def test_options_invalid_for_batches_and_streams_are_refused_early(
    given: dict[str, str], is_refused: bool
) -> None:
    with pytest.raises(InvalidOption) if is_refused else nullcontext():
        check({**ORDERS, **given})


def test_an_end_by_time_is_not_a_code_of_kafka() -> None:
    given = {**ORDERS, "endingOffsetsByTimestamp": '{"orders": {"0": -3}}'}
    with pytest.raises(InvalidOption, match=r"has -3 for orders-0; .* Use endingOffsets"):
        parse(given, is_streaming=False)


def test_subscriptions_choose_partitions() -> None:
    base = {"kafka.bootstrap.servers": "h:1"}
    pattern = parse({**base, "subscribePattern": "or.*"}, is_streaming=True).subscription
    assigned = parse({**base, "assign": '{"orders": [1]}'}, is_streaming=True).subscription
    found = [pattern.takes(TopicPartition(name, 0)) for name in ("orders", "xorders", "xo")]
    assert found == [
        True,
        True,
        False,
    ]  # Anywhere in the name, as with the stock connector.
    assert [assigned.takes(TopicPartition("orders", index)) for index in (0, 1)] == [False, True]
    assert (pattern.names(), assigned.names()) == (None, ("orders",))


def test_rows_are_described_without_the_rest() -> None:
    rows = parse_rows({"columns": "value, offset", "includeHeaders": "true"})
    assert (rows.columns, rows.has_headers) == (("value", "offset"), True)
