"""The steps of a transaction, each retried while librdkafka reports a retriable error.

Other errors require an abort, after which the next transaction may work, or are final: another
producer has taken over the transactional id.
"""

import logging
import time
from collections.abc import Callable
from typing import Protocol

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from headrace.client.librdkafka import exception_for
from headrace.errors import HeadraceError, ProducerFenced

_log = logging.getLogger(__name__)

_PAUSE_S = 0.02
_FENCED = frozenset(
    {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}
)


class TransactionAborted(HeadraceError):
    """The transaction was aborted; the next one may work."""


class OffsetsSource(Protocol):
    """The consumer of a consume-process-produce chain."""

    def uncommitted(self) -> list[TopicPartition]: ...

    def group_metadata(self) -> object: ...


class ProducerTransactions:
    """The transactions of one producer."""

    def __init__(self, producer: confluent_kafka.Producer, timeout_s: float) -> None:
        self._producer = producer
        self._timeout_s = timeout_s
        self._is_initialized = False
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """True after a fatal error, which prevents further transactions."""
        return self._is_over

    def initialize(self) -> None:
        """Take over the transactional id, and abort the previous owner's open transaction."""
        if not self._is_initialized:
            self._attempt(self._producer.init_transactions, "init_transactions")
            self._is_initialized = True

    def begin(self) -> None:
        self.initialize()
        self._attempt(lambda _left_s: self._producer.begin_transaction(), "begin_transaction")

    def send_offsets(self, consumer: OffsetsSource) -> None:
        """Add the offsets of a consumer's returned records to the transaction."""
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
        """Abort the transaction; if that fails, the coordinator aborts it by its timeout."""
        if self._is_over:
            return
        try:
            self._attempt(self._producer.abort_transaction, "abort_transaction")
        except HeadraceError as error:
            _log.warning("transaction not aborted: %s", error, extra={"error": str(error)})

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
    """Return whether to retry; a conflict with an unfinished step would never end."""
    return error.retriable() and error.code() != KafkaError._CONFLICT


def _exception(error: KafkaError, step: str) -> HeadraceError:
    if error.code() in _FENCED:
        return ProducerFenced(f"{step}: another producer has taken over this transactional.id")
    if error.txn_requires_abort():
        aborted = TransactionAborted(f"{step}: {error.str()} ({error.name()})")
        aborted.__cause__ = exception_for(error)
        return aborted
    return exception_for(error, step)
