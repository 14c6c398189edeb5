"""What a subscription may say."""

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


def test_it_reads_by_a_group_of_its_own_unless_one_is_named() -> None:
    found = [subscription().group_of("x"), subscription(group="g").group_of("x")]
    assert found == ["rest-subscription-x", "g"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"target": "http://b.example/"}, "webhook.targets"),
        ({"filter": "value =="}, "filter"),
        ({"dead_letter_topic": "orders"}, "circles"),
        ({"secret": "unknown"}, "webhook.secrets.file"),
        ({"headers": {"X": "${unknown}"}}, "webhook.secrets.file"),
        ({"headers": {"Host": "evil"}}, "proxy's to set"),
        ({"headers": {"x-headrace-signature": "1"}}, "proxy's to set"),
        ({"headers": {"X": "a\r\nY: b"}}, "HTTP allows"),
        ({"headers": {"X y": "a"}}, "HTTP allows"),
        ({"headers": {f"X{n}": "" for n in range(21)}}, "more than 20"),
    ],
)
def test_what_could_never_be_delivered_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(HttpError) as refused:
        check(subscription(**given), ALLOWED, {"known"})
    assert words in str(refused.value)


def test_what_is_right_passes() -> None:
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
def test_what_is_out_of_bounds_is_no_subscription(given: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        subscription(**given)


def test_headers_get_their_secrets_for_the_delivery() -> None:
    assert filled({"A": "Bearer ${k}", "B": "x"}, {"k": "s3"}) == {"A": "Bearer s3", "B": "x"}
