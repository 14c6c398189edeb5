"""Errors of transactions, and the names of their producers."""

from typing import Any, cast

from confluent_kafka import KafkaError

from headrace.client.producer_transactions import TransactionAborted
from headrace.errors import CoordinatorNotAvailable, MessageTooLarge, UnknownTopicOrPartition
from headrace.rest.errors import topic_not_found
from headrace.rest.transactional import Outcomes, TransactionPool, at_record, of_group


def pool(instance: str, **properties: str) -> TransactionPool:
    return TransactionPool(properties, {}, instance=instance, size=1, timeout_s=1)


def test_an_error_keeps_its_code_and_names_the_record() -> None:
    found = at_record(topic_not_found(), 3, "orders")
    assert (found.status, found.code) == (404, 40401)
    assert str(found) == "nothing was written: record 3 for topic 'orders': Topic not found."


def test_an_error_of_the_broker_gets_the_status_of_its_kind() -> None:
    assert at_record(MessageTooLarge("big"), 0, "orders").status == 413


def test_the_record_at_fault_is_blamed_and_not_one_that_went_with_it() -> None:
    outcomes, no_message = Outcomes(3), cast(Any, None)
    outcomes.callback(0)(KafkaError(KafkaError._PURGE_QUEUE), no_message)
    assert outcomes.failed is None  # Somebody else's fault is still to come.
    outcomes.callback(2)(KafkaError(KafkaError.INVALID_RECORD), no_message)
    outcomes.callback(1)(KafkaError(KafkaError._PURGE_INFLIGHT), no_message)
    assert outcomes.blamed is not None
    assert outcomes.blamed[0] == 2


def test_if_all_records_were_dropped_the_first_reported_one_is_named() -> None:
    outcomes, no_message = Outcomes(2), cast(Any, None)
    for index in (1, 0):
        outcomes.callback(index)(KafkaError(KafkaError._PURGE_QUEUE), no_message)
    assert outcomes.blamed is not None
    assert outcomes.blamed[0] == 1


def test_invalid_offsets_are_reported_as_an_error_of_the_caller() -> None:
    aborted = TransactionAborted("send_offsets_to_transaction: unknown")
    aborted.__cause__ = UnknownTopicOrPartition("no such partition")
    found = of_group(aborted, "shop")
    assert (found.status, found.code) == (404, 40403)
    assert str(found) == "nothing was written: offsets of group 'shop': no such partition"


def test_offsets_aborted_by_the_broker_are_reported_as_aborted() -> None:
    aborted = TransactionAborted("send_offsets_to_transaction: busy")
    aborted.__cause__ = CoordinatorNotAvailable("busy")
    found = of_group(aborted, "shop")
    assert (found.status, found.code) == (500, 50002)


async def test_a_proxy_with_an_id_keeps_its_transactional_ids() -> None:
    assert pool("a")._prefix == pool("a")._prefix != pool("b")._prefix


async def test_proxies_without_an_id_are_isolated() -> None:
    assert pool("")._prefix != pool("")._prefix


async def test_identities_are_isolated() -> None:
    assert pool("a", **{"sasl.username": "ada"})._prefix != pool("a")._prefix
