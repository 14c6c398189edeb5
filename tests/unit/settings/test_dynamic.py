"""Changing broker configs at run time: the same values are accepted as in Kafka."""

from pathlib import Path

import pytest

from headrace.errors import InvalidRequest, KafkaError
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_layers import BrokerLayers
from headrace.settings.broker_loading import load
from headrace.settings.dynamic import validate_dynamic

DATA = Path(__file__).resolve().parents[2] / "data"
ANSWERS = [
    line.split("\t")
    for line in (DATA / "kafka_dynamic_configs.tsv").read_text().splitlines()
    if not line.startswith("#")
]
PLAIN = BrokerLayers(BrokerSettings())


def answer(configs: dict[str, str], layers: BrokerLayers = PLAIN, *, one: bool = True) -> int:
    try:
        validate_dynamic(configs, layers, is_per_broker=one)
    except KafkaError as error:
        return error.code
    return 0


def test_every_answer_is_kafkas() -> None:
    """RET-1: by broker and for all of them, right and wrong values, known and unknown names."""
    ours = [
        [name, value, str(answer({name: value})), str(answer({name: value}, one=False))]
        for name, value, _, _ in ANSWERS
    ]
    assert ours == ANSWERS


@pytest.mark.parametrize(
    ("configs", "what_to_do"),
    [
        ({"num.partitions": "3"}, "set it in the properties file and restart"),
        ({"listeners": "PLAINTEXT://:1"}, "set it in the properties file and restart"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "set it in the properties file and restart"),
        ({"message.max.bytes": "-1"}, "must be at least 0"),
        ({"log.retention.ms": "0"}, "-1 (unlimited)"),
        ({"ssl.keystore.location": "/k"}, "set listener.name.LISTENER.ssl.keystore.location"),
        ({"num.io.threads": "100"}, "between 4 and 16 in one step"),
        ({"group.share.assignment.interval.ms": "99999"}, "must be between group.share.min."),
    ],
)
def test_a_refusal_has_advice(configs: dict[str, str], what_to_do: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        validate_dynamic(configs, PLAIN, is_per_broker=True)
    assert what_to_do in str(caught.value)


def test_a_config_of_one_broker_cannot_be_set_for_all() -> None:
    with pytest.raises(InvalidRequest, match="name the broker"):
        validate_dynamic({"ssl.client.auth": "required"}, PLAIN, is_per_broker=False)


def test_a_step_is_measured_from_the_value_in_force() -> None:
    """The file has 2, the cluster 4, this broker 8."""
    static, _ = load({"num.io.threads": "2"})
    assert answer({"num.io.threads": "8"}, BrokerLayers(static)) == InvalidRequest.code
    assert answer({"num.io.threads": "8"}, BrokerLayers(static, {"num.io.threads": "4"})) == 0
    layers = BrokerLayers(static, {"num.io.threads": "4"}, {"num.io.threads": "8"})
    assert answer({"num.io.threads": "16"}, layers) == 0


def test_listeners_that_stay_as_they_are_may_be_set() -> None:
    """Tools that write back all they have read change nothing."""
    assert answer({"listeners": "PLAINTEXT://:9092"}) == 0
