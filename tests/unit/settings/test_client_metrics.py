"""Configs of client metrics subscriptions."""

import pytest

from headrace.errors import InvalidConfig
from headrace.settings.client_metrics import validate


def test_a_subscription_is_taken() -> None:
    validate({"interval.ms": "1000", "metrics": "*", "match": "client_id=app-.*"})


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"interval.ms": "10"}, "between 100 and 3600000"),
        ({"match": "colour=red"}, "client_software_name"),
        ({"match": "client_id=["}, "no regular expression"),
        ({"metric": "*"}, "Did you mean metrics?"),
    ],
)
def test_what_cannot_be_matched_is_refused(configs: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        validate(configs)
    assert message in str(caught.value)
