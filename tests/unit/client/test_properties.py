"""Names of properties: librdkafka's, Java's where it has none, and typing errors."""

import pytest

import headrace
from headrace.client.properties import InvalidProperty, names, split


def test_librdkafkas_names_pass_unchanged() -> None:
    given = {"bootstrap.servers": "a:1", "linger.ms": 5, "fetch.wait.max.ms": 1}
    assert split(given)[0] == given


def test_bare_text_is_the_bootstrap_servers() -> None:
    assert split("a:1,b:2")[0] == {"bootstrap.servers": "a:1,b:2"}


def test_javas_names_are_accepted() -> None:
    """PRD-9: buffer.memory is in bytes, librdkafka's limit in kilobytes."""
    given = {"buffer.memory": 33_554_432, "fetch.max.wait.ms": 9, "max.request.size": "77"}
    assert split(given)[0] == {
        "queue.buffering.max.kbytes": 32_768,
        "fetch.wait.max.ms": 9,
        "message.max.bytes": "77",
    }


def test_librdkafkas_name_precedes_javas() -> None:
    given = {"buffer.memory": 1024, "queue.buffering.max.kbytes": 7}
    assert split(given)[0] == {"queue.buffering.max.kbytes": 7}


def test_our_own_settings_do_not_reach_librdkafka() -> None:
    given, own = split({"max.block.ms": "250", "max.poll.records": 7, "default.api.timeout.ms": 1})
    assert given == {}
    assert (own.max_block_s, own.max_poll_records, own.api_timeout_s) == (0.25, 7, 0.001)


def test_a_property_of_none_is_left_out() -> None:
    assert split({"linger.ms": None})[0] == {}


@pytest.mark.parametrize("name", ["max.block.ms", "max.poll.records"])
def test_an_invalid_number_is_rejected(name: str) -> None:
    with pytest.raises(InvalidProperty, match=name):
        split({name: "soon"})


def test_a_java_class_is_rejected_with_advice() -> None:
    with pytest.raises(InvalidProperty, match="partitioner=function"):
        split({"partitioner.class": "org.example.MyPartitioner"})


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("lingr.ms", "linger.ms"),
        ("enable.idempotense", "enable.idempotence"),
        ("max.blok.ms", "max.block.ms"),
        ("bufer.memory", "buffer.memory"),
    ],
)
def test_a_typo_is_an_error_with_the_nearest_name(typo: str, meant: str) -> None:
    with pytest.raises(InvalidProperty, match=f"Did you mean {meant}"):
        headrace.Producer({"bootstrap.servers": "localhost", typo: 1})


def test_a_value_that_is_impossible_is_refused() -> None:
    with pytest.raises(InvalidProperty, match="acks"):
        headrace.Producer({"bootstrap.servers": "localhost", "acks": "many"})


def test_a_consumer_reports_the_same() -> None:
    with pytest.raises(InvalidProperty, match=r"Did you mean auto\.offset\.reset"):
        headrace.Consumer({"bootstrap.servers": "localhost", "auto.ofset.reset": "earliest"})


def test_every_name_is_listed_once() -> None:
    assert len(names()) == len(set(names())) + 1  # max.poll.records: librdkafka's, and ours.
