"""The options of the sink, and the errors for wrong ones."""

import pytest

from headrace.spark.sink.errors import WrongOption
from headrace.spark.sink.options import Guarantee, sink_options

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


def test_exactly_once_is_the_default() -> None:
    assert sink_options(SERVERS).guarantee is Guarantee.EXACTLY_ONCE


def test_client_properties_lose_their_prefix_and_ours_are_not_among_them() -> None:
    options = sink_options({**SERVERS, "kafka.linger.ms": "5", "topic": "orders"})
    assert options.properties == {"bootstrap.servers": "127.0.0.1:9092", "linger.ms": "5"}
    assert options.topic == "orders"


def test_names_come_in_any_case_as_spark_gives_them() -> None:
    assert sink_options({**SERVERS, "SingleTransaction": "TRUE"}).is_single_transaction


def test_a_password_is_not_shown() -> None:
    assert "hush" not in repr(sink_options({**SERVERS, "kafka.sasl.password": "hush"}))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
        ({"guarantee": "twice"}, "exactly-once, idempotent, at-least-once"),
        ({"token.batch": "-1"}, "token.batch is .* must be a whole number"),
        ({"singleTransaction": "yes"}, "true or false"),
        ({"singleTransaction": "true", "guarantee": "idempotent"}, "needs guarantee=exactly-once"),
        ({"value.format": "xml"}, "bytes, json, avro, protobuf"),
        ({"value.format": "avro"}, r"needs the option schema\.registry\.url"),
        ({"schema.registry.url": "http://127.0.0.1:1"}, "needs value.format=json, avro"),
        (
            {"schema.registry.url": "http://127.0.0.1:1", "value.format": "avro"},
            "needs the option topic",
        ),
        ({"value.columns": "a"}, "needs value.format=json"),
        ({"kafka.transactional.id": "mine"}, "kafka.transactional.id cannot be set"),
        ({"kafka.enable.idempotence": "false"}, "set the option guarantee"),
        ({"kafka.transaction.timeout.ms": "soon"}, "must be a number above 0"),
    ],
)
def test_a_wrong_option_is_named(wrong: dict[str, str], error: str) -> None:
    with pytest.raises(WrongOption, match=error):
        sink_options({**SERVERS, **wrong})


def test_a_registry_has_an_address_a_subject_and_a_login_that_is_not_shown() -> None:
    given = {
        **SERVERS,
        "topic": "orders",
        "value.format": "json",
        "schema.registry.url": "http://127.0.0.1:1",
        "schema.registry.basic.auth.user.info": "ada:s3cret",
        "schema.registry.subject": "com.shop.Order",
    }
    options = sink_options(given)
    assert options.registry is not None
    assert (options.registry.format, options.registry.subject) == ("json", "com.shop.Order")
    assert options.is_value_of_columns
    assert not options.is_json
    assert "s3cret" not in repr(options)
