"""Atomic batches in two phases: tasks prepare transactions, and the driver commits them.

Each task writes its rows and its token in a transaction and leaves it open. Then the driver adds
its decision, the list of all transactions, to that of task 0, commits this one first, and then the
others. A transaction belongs to a producer id and epoch, not to a connection, so any process with
these can end it. After a crash

- before the commit of task 0, nothing is visible. The retry's tasks claim the same transactional
  ids, which aborts the open transactions, and write again, with any number of tasks;
- after it, the retry commits the transactions of the decision and skips the batch. If one has timed
  out, its task must write again, and the retry needs the same number of tasks.

Two runs of one query compete for the transactional id of task 0, so this task prepares a
transaction even without rows. The run that loses it commits nothing.
"""

import logging
from collections.abc import Collection, Iterable, Sequence

from headrace.client.admin import Admin
from headrace.errors import (
    HeadraceError,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
    TransactionAbortable,
    TransactionalIdNotFound,
    error_for,
)
from headrace.protocol.schemas.end_txn import EndTxnRequest, EndTxnResponse
from headrace.spark.sink.errors import Fenced, OtherTasks, SinkError
from headrace.spark.sink.token_log import TokenLog
from headrace.spark.sink.tokens import Decision, Prepared, transactional_id

_log = logging.getLogger(__name__)

_LOST = (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
    TransactionAbortable,
    TransactionalIdNotFound,
)


class _EndTxnRequest(EndTxnRequest):
    """Limited to version 4: later ones increase the epoch, which librdkafka does not expect."""

    VERSIONS = range(5)


class Epochs:
    """The batches of one writer."""

    def __init__(self, admin: Admin, log: TokenLog, writer: str, topic: str | None) -> None:
        self.writer = writer
        self.log = log
        self._topic = topic
        self._admin = admin

    def must_write(self, epoch: int, task: int) -> bool:
        """Return whether a task's rows still have to be written."""
        decision = self.log.decision(self.writer)
        if decision is None or decision.epoch < epoch:
            return True
        if decision.epoch > epoch:
            return False
        missing = self._finish(decision)
        if missing and task >= decision.tasks:
            raise _other_tasks(self.writer, decision, task + 1, at_least=True)
        return task in missing

    def commit(self, epoch: int, tasks: int, prepared: Sequence[Prepared]) -> None:
        """Make a batch visible unless it is already; an error means that nothing is visible."""
        decision = self.log.decision(self.writer)
        if decision is not None and decision.epoch > epoch:
            _log.warning(
                "batch skipped, a later one is written",
                extra={"batch": epoch, "writer": self.writer, "written_batch": decision.epoch},
            )
            self.abort(prepared)
            return
        kept: tuple[Prepared, ...] = ()
        if decision is not None and decision.epoch == epoch:
            missing = self._finish(decision)
            self.abort([one for one in prepared if one.task not in missing])
            prepared = [one for one in prepared if one.task in missing]
            if not missing:
                return
            if decision.tasks != tasks or {one.task for one in prepared} != missing:
                self.abort(prepared)
                raise _other_tasks(self.writer, decision, tasks)
            kept = tuple(one for one in decision.transactions if one.task not in missing)
        self._decide(
            Decision(epoch=epoch, tasks=tasks, transactions=(*kept, *prepared), topic=self._topic),
            first=min(prepared, key=_task),
        )
        self.commit_prepared(prepared)
        if decision is not None and decision.epoch < epoch:
            self._claim(range(tasks, decision.tasks))

    def commit_prepared(self, prepared: Iterable[Prepared]) -> None:
        """Commit transactions in the order of tasks."""
        for one in sorted(prepared, key=_task):
            if not self._end(one, committed=True):
                raise self._lost(one)

    def abort(self, prepared: Collection[Prepared], tasks: int = 0) -> None:
        """Abort prepared transactions, and those that other tasks of `tasks` may have open.

        Transactions that cannot be reached now time out.
        """
        self._claim(set(range(tasks)) - {one.task for one in prepared})
        for one in prepared:
            try:
                self._end(one, committed=False)
            except HeadraceError as error:
                _warn_of_timeout(transactional_id(self.writer, one.task), error)

    def _finish(self, decision: Decision) -> set[int]:
        """Commit a decision after a crash; return the tasks whose transactions are lost."""
        if decision.topic != self._topic:
            raise SinkError(
                f"{self.writer!r} has written batch {decision.epoch} to"
                f" {_topic_text(decision.topic)}, and would now write to"
                f" {_topic_text(self._topic)}: give each write its own token.writer"
            )
        history = self.log.history(self.writer)
        open_ = [one for one in decision.transactions if not history.has(one)]
        return {one.task for one in open_ if not self._end(one, committed=True)}

    def _claim(self, tasks: Iterable[int]) -> None:
        """Abort transactions of tasks that the retry of a crashed attempt does not have.

        Readers of committed records would wait until they time out.
        """
        for task in tasks:
            name = transactional_id(self.writer, task)
            try:
                self._admin.transactions.terminate(name)
            except HeadraceError as error:
                _warn_of_timeout(name, error)

    def _decide(self, decision: Decision, first: Prepared) -> None:
        try:
            self.log.append(self.writer, first, decision)
        except _LOST:
            raise self._lost(first) from None

    def _lost(self, prepared: Prepared) -> Fenced:
        return Fenced(
            f"the transaction {transactional_id(self.writer, prepared.task)!r} is lost: it took"
            " longer than kafka.transaction.timeout.ms, or another attempt (a second run of this"
            " query, spark.speculation) has claimed its id; the batch can be retried"
        )

    def _end(self, prepared: Prepared, *, committed: bool) -> bool:
        """End a transaction; return False if it is lost. Repeating the end is fine."""
        name = transactional_id(self.writer, prepared.task)
        request = _EndTxnRequest(
            transactional_id=name,
            producer_id=prepared.producer_id,
            producer_epoch=prepared.producer_epoch,
            committed=committed,
        )

        def attempt() -> None:
            node = self._admin.transactions.coordinator_of(name)
            answer = self._admin.cluster.ask(request, EndTxnResponse, node)
            if answer.error_code:
                raise error_for(answer.error_code)

        try:
            self._admin.cluster.retry(attempt)
        except _LOST:
            return False
        return True


def _warn_of_timeout(name: str, error: HeadraceError) -> None:
    _log.warning("transaction left to time out", extra={"transaction": name, "error": str(error)})


def _other_tasks(
    writer: str, decision: Decision, tasks: int, *, at_least: bool = False
) -> OtherTasks:
    now = f"at least {tasks}" if at_least else str(tasks)
    return OtherTasks(
        f"batch {decision.epoch} of {writer!r} was committed in part by {decision.tasks} tasks, and"
        f" its retry has {now}, so the missing rows are unknown. Run the retry with the same number"
        " of tasks (the same partitions of the source, spark.sql.shuffle.partitions, coalesce), or"
        " write with one task, which is never committed in part"
    )


def _task(prepared: Prepared) -> int:
    return prepared.task


def _topic_text(topic: str | None) -> str:
    return "the topics that its rows name" if topic is None else f"topic {topic!r}"
