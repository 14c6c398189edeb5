"""Which options the sink takes, and what it says of wrong ones."""

import pytest

from headrace.spark.sink.errors import WrongOption
from headrace.spark.sink.options import Guarantee, sink_options

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


def test_exactly_once_is_what_one_gets_without_asking() -> None:
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
    ("wrong", "said"),
    [
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
        ({"guarantee": "twice"}, "exactly-once, idempotent, at-least-once"),
        ({"token.batch": "-1"}, "token.batch must be a number"),
        ({"singleTransaction": "yes"}, "true or false"),
        ({"singleTransaction": "true", "guarantee": "idempotent"}, "needs guarantee=exactly-once"),
        ({"value.format": "xml"}, "bytes or json"),
        ({"value.columns": "a"}, "needs value.format=json"),
        ({"kafka.transactional.id": "mine"}, "kafka.transactional.id cannot be set"),
        ({"kafka.enable.idempotence": "false"}, "set the option guarantee"),
        ({"kafka.transaction.timeout.ms": "soon"}, "must be a number above 0"),
    ],
)
def test_a_wrong_option_is_named(wrong: dict[str, str], said: str) -> None:
    with pytest.raises(WrongOption, match=said):
        sink_options({**SERVERS, **wrong})
