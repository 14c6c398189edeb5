"""Valid and invalid subscriptions."""

from typing import Any

import msgspec
import pytest

from headrace.http.errors import HttpError
from headrace.rest.webhooks.subscription import Retry, Subscription, check, filled
from headrace.rest.webhooks.targets import AllowedTargets

ALLOWED = AllowedTargets("a.example")


def subscription(**more: Any) -> Subscription:
    given = {"topics": ["orders"], "target": "http://a.example/hook", **more}
    return msgspec.convert(given, Subscription)


def test_the_pause_doubles_up_to_its_bound() -> None:
    retry = Retry(initial_ms=100, max_ms=1_000)
    assert [retry.wait_ms(one) for one in (1, 2, 3, 4, 5, 100)] == [100, 200, 400, 800, 1000, 1000]


def test_a_subscription_has_its_own_group_by_default() -> None:
    found = [subscription().group_of("x"), subscription(group="g").group_of("x")]
    assert found == ["rest-subscription-x", "g"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"target": "http://b.example/"}, "webhook.targets"),
        ({"filter": "value =="}, "filter"),
        ({"dead_letter_topic": "orders"}, "loop"),
        ({"secret": "unknown"}, "webhook.secrets.file"),
        ({"headers": {"X": "${unknown}"}}, "webhook.secrets.file"),
        ({"headers": {"Host": "evil"}}, "set by the proxy"),
        ({"headers": {"x-headrace-signature": "1"}}, "set by the proxy"),
        ({"headers": {"X": "a\r\nY: b"}}, "not valid in HTTP"),
        ({"headers": {"X y": "a"}}, "not valid in HTTP"),
        ({"headers": {f"X{n}": "" for n in range(21)}}, "at most 20"),
    ],
)
def test_a_subscription_that_cannot_deliver_is_rejected(given: dict[str, Any], words: str) -> None:
    with pytest.raises(HttpError) as refused:
        check(subscription(**given), ALLOWED, {"known"})
    assert words in str(refused.value)


def test_a_valid_subscription_is_accepted() -> None:
    given = subscription(
        secret="known", headers={"Authorization": "Bearer ${known}"}, filter="true"
    )
    check(given, ALLOWED, {"known"})


@pytest.mark.parametrize(
    "given",
    [
        *({"topics": []}, {"topics": ["a b"]}, {"batch_size": 0}, {"retry": {"attempts": 0}}),
        *({"from": "middle"}, {"format": "XML"}, {"timeout_ms": 1}, {"secrets": "x"}),
    ],
)
def test_values_out_of_bounds_are_rejected(given: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        subscription(**given)


def test_headers_get_their_secrets_for_the_delivery() -> None:
    assert filled({"A": "Bearer ${k}", "B": "x"}, {"k": "s3"}) == {"A": "Bearer s3", "B": "x"}
