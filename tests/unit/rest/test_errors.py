"""Errors by the codes of Confluent's proxy."""

import pytest
from msgspec import json

from headrace import errors
from headrace.client.addresses import BrokerUnreachable
from headrace.client.admin_pool import AdminBusy
from headrace.client.descriptions import Outcome
from headrace.client.librdkafka import ClientFailure, TimedOut
from headrace.client.loop_producer import BufferFull, TopicMissing
from headrace.errors import HeadraceError
from headrace.http.errors import ContentTooLarge
from headrace.rest.errors import body_of, check_partition, of_client, rendered, topic_not_found


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (errors.SaslAuthenticationFailed("x"), 401, 40101),
        (errors.TopicAuthorizationFailed("x"), 403, 40301),
        (errors.UnknownTopicOrPartition("x"), 404, 40403),
        (errors.GroupIdNotFound("x"), 404, 40405),
        (errors.TopicAlreadyExists("x"), 400, 40002),
        (errors.SecurityDisabled("x"), 400, 40002),
        (errors.InvalidConfig("x"), 400, 40002),
        (errors.NonEmptyGroup("x"), 400, 40002),
        (errors.TransactionalIdNotFound("x"), 404, 404),
        (errors.MessageTooLarge("x"), 413, 413),
        (errors.ThrottlingQuotaExceeded("x"), 429, 42901),
        (errors.NotEnoughReplicas("x"), 500, 50003),
        (errors.OffsetOutOfRange("x"), 500, 50002),
        (BrokerUnreachable("x"), 503, 50302),
        (AdminBusy("x"), 503, 503),
        (BufferFull("x"), 503, 503),
        (TopicMissing("x"), 404, 40401),
        (TimedOut("x"), 500, 50003),
        (ClientFailure("x"), 500, 50002),
        (topic_not_found(), 404, 40401),
    ],
)
def test_every_error_has_a_status_and_a_code(error: HeadraceError, status: int, code: int) -> None:
    found = of_client(error)
    assert (found.status, body_of(found).error_code) == (status, code)


def test_the_failed_partition_of_several_is_named() -> None:
    check_partition(Outcome(name="orders-0"))
    with pytest.raises(errors.UnknownTopicOrPartition, match=r"^partition orders-9: not there$"):
        check_partition(
            Outcome(name="orders-9", error="UNKNOWN_TOPIC_OR_PARTITION", message="not there")
        )


def test_a_missing_answer_is_reported() -> None:
    assert "did not answer" in str(of_client(BrokerUnreachable("cannot reach a:1")))
    assert "did not answer" in str(of_client(TimedOut("x")))


def test_errors_without_a_code_have_their_status_as_one() -> None:
    body = json.decode(bytes(rendered(ContentTooLarge("too much")).body))
    assert body == {"error_code": 413, "message": "too much"}
