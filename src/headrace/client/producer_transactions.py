"""The steps of a transaction, each tried again while librdkafka says that it may still work.

What can go wrong is of three kinds: it passes, the transaction must be aborted (the next one may
work), or another producer has taken over the transactional id and this one is done.
"""

import logging
import time
from collections.abc import Callable
from typing import Protocol

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from headrace.client.librdkafka import exception_for
from headrace.errors import HeadraceError, ProducerFenced

logger = logging.getLogger(__name__)

_PAUSE_S = 0.02
_FENCED = frozenset(
    {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}
)


class TransactionAborted(HeadraceError):
    """The transaction is not committed, nothing of it is visible; the next one may work."""


class OffsetsSource(Protocol):
    """The consumer of a consume-process-produce chain."""

    def uncommitted(self) -> list[TopicPartition]: ...

    def group_metadata(self) -> object: ...


class Transactions:
    """The transactions of one producer."""

    def __init__(self, producer: confluent_kafka.Producer, timeout_s: float) -> None:
        self._producer = producer
        self._timeout_s = timeout_s
        self._is_initialized = False
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether this producer can do no transaction any more."""
        return self._is_over

    def initialize(self) -> None:
        """Take over the transactional id, and end what its last owner left open."""
        if not self._is_initialized:
            self._attempt(self._producer.init_transactions, "init_transactions")
            self._is_initialized = True

    def begin(self) -> None:
        self.initialize()
        self._attempt(lambda _left_s: self._producer.begin_transaction(), "begin_transaction")

    def send_offsets(self, consumer: OffsetsSource) -> None:
        """Let the offsets that a consumer has reached be committed by this transaction."""
        offsets = consumer.uncommitted()
        if offsets:
            self._attempt(
                lambda left_s: self._producer.send_offsets_to_transaction(
                    offsets, consumer.group_metadata(), left_s
                ),
                "send_offsets_to_transaction",
            )

    def commit(self) -> None:
        self._attempt(self._producer.commit_transaction, "commit_transaction")

    def abort(self) -> None:
        """Take everything back; if even that fails, the coordinator does it in a while."""
        if self._is_over:
            return
        try:
            self._attempt(self._producer.abort_transaction, "abort_transaction")
        except HeadraceError as error:
            logger.warning("a transaction is left to time out: %s", error)

    def _attempt(self, step: Callable[[float], None], name: str) -> None:
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                return step(max(0.001, deadline - time.monotonic()))
            except KafkaException as failure:
                error: KafkaError = failure.args[0]
                self._is_over = self._is_over or error.fatal()
                if not _passes(error) or time.monotonic() >= deadline:
                    raise _exception(error, name) from None
            time.sleep(_PAUSE_S)


def _passes(error: KafkaError) -> bool:
    """Whether to try again; a conflict with a step that never ended would never end either."""
    return error.retriable() and error.code() != KafkaError._CONFLICT


def _exception(error: KafkaError, step: str) -> HeadraceError:
    if error.code() in _FENCED:
        return ProducerFenced(f"{step}: another producer has this transactional.id now")
    if error.txn_requires_abort():
        aborted = TransactionAborted(f"{step}: {error.str()} ({error.name()})")
        aborted.__cause__ = exception_for(error)
        return aborted
    return exception_for(error, step)
