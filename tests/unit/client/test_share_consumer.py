"""The settings of share consumers that librdkafka takes, or refuses, without telling why."""

import pytest
from confluent_kafka import Message

from headrace import HeadraceError, ShareConsumer

SERVERS = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "needs group.id"),
        ({"group.id": "jobs", "share.acknowledgement.mode": "explict"}, "implicit or explicit"),
        (
            {"group.id": "jobs", "auto.offset.reset": "earliest"},
            "configs alter group jobs --set share.auto.offset.reset=earliest",
        ),
        ({"group.id": "jobs", "enable.auto.commit": False}, "enable.auto.commit"),
        ({"group.id": "jobs", "no.such": 1}, "no.such"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, object], message: str) -> None:
    """PUL-5: a typing error must not mean that nothing is ever settled."""
    with pytest.raises(HeadraceError, match=message):
        ShareConsumer({**SERVERS, **settings})


def test_the_mode_of_acknowledgement_may_be_in_capitals_as_javas() -> None:
    with ShareConsumer({**SERVERS, "group.id": "g", "share.acknowledgement.mode": "EXPLICIT"}):
        pass


def test_an_implicit_mode_has_no_acknowledgement_of_single_records() -> None:
    """PUL-4: librdkafka reports an erroneous state only."""
    with ShareConsumer({**SERVERS, "group.id": "jobs"}) as consumer:
        for acknowledge in (consumer.accept, consumer.release, consumer.reject):
            with pytest.raises(HeadraceError, match="mode=explicit"):
                acknowledge(Message())


def test_polling_without_a_subscription_raises_a_headrace_error() -> None:
    with (
        ShareConsumer({**SERVERS, "group.id": "jobs"}) as consumer,
        pytest.raises(HeadraceError, match="not subscribed"),
    ):
        consumer.poll(0)
