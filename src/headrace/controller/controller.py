"""The controller's shell: decide, write, sync, replay, publish, and only then answer.

Decisions are made one at a time on the newest image, which may be ahead of the disk; nobody
outside sees it before its records are synced. While a sync runs in a thread, further decisions
gather behind it and share the next one. If a sync fails nothing is known of what was written, so
the controller stops for good rather than guess.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar

from headrace.controller.activation import activate
from headrace.controller.decision import ClusterDefaults, Decide
from headrace.controller.registration import (
    BrokerIdentity,
    ControllerIdentity,
    check_features,
    register_broker,
    register_controller,
    shut_down_broker,
    unfence_broker,
)
from headrace.errors import KafkaError, KafkaStorageError
from headrace.metadata.delta import ImageDelta
from headrace.metadata.image import MetadataImage
from headrace.metadata.loader import MetadataLoader, Publication
from headrace.protocol.message import Message
from headrace.raft.metadata_log import MetadataLog
from headrace.runtime.clock import Clock

_log = logging.getLogger(__name__)

T = TypeVar("T")

Background = Callable[[Callable[[], T]], Awaitable[T]]
"""Runs a function in a thread."""

Listener = Callable[[ImageDelta, MetadataImage], None]


class _Pending(NamedTuple):
    """An operation whose reply waits for a sync; one without records waits for those before it."""

    publication: Publication | None
    done: asyncio.Future[None]


class Controller:
    """Owns the metadata log of a quorum of one; everything here runs on the event loop."""

    def __init__(
        self,
        log: MetadataLog,
        loader: MetadataLoader,
        clock: Clock,
        background: Background[None],
        defaults: ClusterDefaults | None = None,
    ) -> None:
        self.log = log
        self.defaults = defaults or ClusterDefaults()
        """They follow the node's settings, and are replaced when those change."""
        self.image = loader.image
        """The last image whose records are on disk: what clients may see."""
        self.broker_epoch = -1
        self.failure: KafkaStorageError | None = None
        self._loader = loader
        self._clock = clock
        self._background = background
        self._listeners: list[Listener] = []
        self._on_failure: Callable[[KafkaStorageError], None] | None = None
        self._pending: list[_Pending] = []
        self._committing: asyncio.Task[None] | None = None
        self._snapshotting: asyncio.Task[None] | None = None

    def on_published(self, callback: Listener) -> None:
        """Call back, on the loop, with each new image and what changed."""
        self._listeners.append(callback)

    def on_failure(self, callback: Callable[[KafkaStorageError], None]) -> None:
        """Call back once when the metadata log has failed: the node cannot go on."""
        self._on_failure = callback

    async def submit(self, decide: Decide[T]) -> T:
        """Carry out a decision; returns its reply when the records are on disk and published."""
        reply, done = self._write(decide)
        if done is not None:
            await done
        return reply

    # The life of a node.

    async def start(
        self,
        bootstrap: Sequence[Message],
        controller: ControllerIdentity,
        broker: BrokerIdentity,
    ) -> int:
        """Lead, fill an empty log, and register this node, all with one sync; its broker epoch."""
        check_features(self.image, broker.features)
        self._loader.replay(self.log.take_over(controller.endpoints, self._clock.now_ms()))
        in_transaction = self._loader.transaction_offset is not None
        self._write(
            lambda image: activate(image, bootstrap, self.defaults, in_transaction=in_transaction)
        )
        self._write(lambda image: register_controller(image, controller))
        self.broker_epoch = await self.submit(
            lambda image: register_broker(image, broker, self.log.end_offset, self.defaults)
        )
        return self.broker_epoch

    async def unfence(self, broker_id: int) -> None:
        """Open for business: the logs are loaded."""
        await self.submit(
            lambda image: unfence_broker(image, broker_id, self.broker_epoch, self.defaults)
        )

    async def stop(self, broker_id: int) -> None:
        """Fence this node's broker, let writes and a snapshot under way finish, close the log."""
        try:
            await self.submit(
                lambda image: shut_down_broker(image, broker_id, self.broker_epoch, self.defaults)
            )
        except KafkaError as error:
            _log.warning("the broker stops without being fenced: %s", error)
        await self.close()

    async def close(self) -> None:
        """Finish what is under way and close the log."""
        for task in (self._committing, self._snapshotting):
            if task is not None:
                await asyncio.wait([task])
        self.log.close()

    # Snapshots.

    async def maintain(self) -> None:
        """What falls due with time: a snapshot every now and then, old ones removed.

        Kafka's controller also writes a NoOpRecord twice a second, so that followers see the
        high watermark move. A quorum of one has no followers, and an idle node should leave the
        disk alone.
        """
        if self.log.has_aged(self._clock.now_ms()):
            self._begin_snapshot()
        if self._snapshotting is not None:
            await asyncio.wait([self._snapshotting])  # Whoever stops waiting does not stop it.
        try:
            self.log.clean(self._clock.now_ms())
        except (OSError, KafkaStorageError) as error:
            _log.warning("old metadata snapshots were not deleted: %s", error)

    def _begin_snapshot(self) -> None:
        is_idle = self._snapshotting is None or self._snapshotting.done()
        if is_idle and self.failure is None:
            task = asyncio.get_running_loop().create_task(self._snapshot(self.image))
            self._snapshotting = task

    async def _snapshot(self, image: MetadataImage) -> None:
        plan = self.log.plan_snapshot(image, self._clock.now_ms())
        try:
            await self._background(plan.run)
            self.log.snapshot_taken(plan)
        except (OSError, KafkaStorageError) as error:
            # The log still has every record; the next attempt comes by itself.
            _log.warning("the metadata snapshot %s was not written: %s", plan.id.file_name, error)

    # Writing.

    def _write(self, decide: Decide[T]) -> tuple[T, asyncio.Future[None] | None]:
        if self.failure is not None:
            raise self.failure
        decision = decide(self._loader.image)
        if not decision.records:
            # The reply may rest on records that are still being synced.
            return decision.reply, self._enqueue(None) if self._is_committing() else None
        prepared = self.log.prepare(decision.records, self._clock.now_ms())
        before = self._loader.image
        try:
            # Replayed first: what we could not read back must never get into the log.
            for one in prepared:
                self._loader.replay(one.batch)
            publication = self._loader.publish()
            self.log.append(prepared)
        except BaseException:
            self._loader = MetadataLoader(before)
            raise
        return decision.reply, self._enqueue(publication)

    def _enqueue(self, publication: Publication | None) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._pending.append(_Pending(publication, done))
        if not self._is_committing():
            self._committing = loop.create_task(self._commit())
        return done

    def _is_committing(self) -> bool:
        return self._committing is not None and not self._committing.done()

    async def _commit(self) -> None:
        """Sync and publish until nothing is pending: the group commit."""
        while self._pending:
            synced, self._pending = self._pending, []
            if any(publication is not None for publication, _ in synced):
                plan = self.log.plan_flush()
                try:
                    await self._background(plan.run)
                except Exception as error:  # The disk, or no thread left to ask it.
                    self._fail(error, synced + self._pending)
                    return
                self.log.flushed(plan, self._clock.now_ms())
            for publication, done in synced:
                if publication is not None:
                    self._publish(publication)
                if not done.done():
                    done.set_result(None)
        if self.log.has_grown():
            self._begin_snapshot()

    def _publish(self, publication: Publication) -> None:
        self.image = publication.image
        for listener in self._listeners:
            try:
                listener(publication.delta, publication.image)
            except Exception:
                # One part of the node that trips must not keep the others from the news.
                _log.exception("a listener failed on metadata offset %d", publication.image.offset)

    def _fail(self, error: Exception, lost: Sequence[_Pending]) -> None:
        self._pending = []
        self.log.fail(error if isinstance(error, OSError) else OSError(str(error)))
        self.failure = KafkaStorageError(f"the metadata log failed: {error}; the node must stop")
        _log.error("the metadata log failed and takes no more changes: %s", error)
        for _, done in lost:
            if not done.done():
                done.set_exception(self.failure)
                done.exception()  # Nobody need wait for it: the failure is told above, too.
        if self._on_failure is not None:
            self._on_failure(self.failure)
