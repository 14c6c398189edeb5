"""Configs of client metrics subscriptions."""

import pytest

from headrace.errors import InvalidConfig, InvalidRequest, KafkaError
from headrace.settings.client_metrics import validate


def test_a_subscription_is_taken() -> None:
    validate({"interval.ms": "1000", "metrics": "*", "match": "client_id=app-.*"})


@pytest.mark.parametrize(
    ("configs", "error", "message"),
    [
        ({"interval.ms": "10"}, InvalidRequest, "between 100 and 3600000"),
        ({"interval.ms": "often"}, InvalidConfig, "whole number"),
        ({"match": "colour=red"}, InvalidConfig, "client_software_name"),
        ({"match": "client_id=["}, InvalidConfig, "invalid regular expression"),
        ({"metric": "*"}, InvalidRequest, "Did you mean metrics?"),
    ],
)
def test_invalid_subscriptions_are_refused(
    configs: dict[str, str], error: type[KafkaError], message: str
) -> None:
    with pytest.raises(error) as caught:
        validate(configs)
    assert message in str(caught.value)
