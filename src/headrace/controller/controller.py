"""The controller's shell: follows the committed log, and decides while this node leads the quorum.

Decisions are made one at a time on the newest image, which may be ahead of the disk. Their records
are proposed to the quorum. Other parts see an image, and clients get answers, only after the
records are committed. Controllers that do not lead replay committed records, so each of them can
take over.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from headrace.controller.activation import activate
from headrace.controller.decision import ClusterDefaults, Decide
from headrace.controller.mutation_quotas import MutationQuotas
from headrace.controller.registration import check_features
from headrace.controller.requests import Context, decide
from headrace.errors import KafkaError, KafkaStorageError, NotController
from headrace.metadata.delta import ImageDelta
from headrace.metadata.features import SUPPORTED
from headrace.metadata.image import MetadataImage
from headrace.metadata.loader import LoaderState, MetadataLoader, Publication
from headrace.metadata.log.metadata_log import MetadataLog
from headrace.metadata.records import VersionedRecord
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.quotas.rates import Windows
from headrace.raft.messages import Leadership
from headrace.raft.replicas import VoterHistory
from headrace.runtime.clock import Clock
from headrace.runtime.durations import Durations
from headrace.security.access import OPEN, Access, Authorizer
from headrace.security.principals import Caller
from headrace.settings.broker import BrokerSettings

if TYPE_CHECKING:
    from headrace.controller.sessions import BrokerSessions
    from headrace.quotas.throttling import Mutations

_log = logging.getLogger(__name__)

T = TypeVar("T")

Background = Callable[[Callable[[], T]], Awaitable[T]]
"""Runs a function in a thread."""

Listener = Callable[[ImageDelta, MetadataImage], object]


class Proposals(Protocol):
    """The quorum, as far as the controller needs it."""

    log: MetadataLog
    history: VoterHistory
    failure: KafkaStorageError | None

    @property
    def node_id(self) -> int: ...

    @property
    def epoch(self) -> int: ...

    @property
    def kraft_version(self) -> int: ...

    def propose(self, data: bytearray) -> int: ...

    def upgrade(self, kraft_version: int) -> None: ...


class _Pending(NamedTuple):
    """A decision whose reply waits until the log is committed up to an offset.

    A decision without records waits for those before it.
    """

    end_offset: int
    publication: Publication | None
    state: LoaderState
    done: asyncio.Future[None]
    began_ms: int


class Controller:
    """Decides while it leads; everything here runs on the event loop.

    Decisions build on the *proposed* state, which is everything written. Nodes see the *committed*
    image. A controller that loses leadership goes back to the committed state.
    """

    def __init__(
        self,
        quorum: Proposals,
        clock: Clock,
        background: Background[None],
        settings: BrokerSettings,
        *,
        may_lead: bool = True,
        cluster_id: str | None = None,
        has_other_brokers: bool = False,
    ) -> None:
        self.quorum = quorum
        self.settings = settings
        """Defaults of topics and configs; replaced when the node's settings change."""
        self.authorizer: Authorizer | None = None
        """Decides what clients may do; None grants everything."""
        self._mutation_quotas = MutationQuotas(
            Windows(
                settings.controller_quota_window_num,
                1000 * settings.controller_quota_window_size_seconds,
            )
        )
        self.is_leading = False
        self.sessions: BrokerSessions | None = None
        """The sessions of brokers while this controller decides; a broker alone has none."""
        self._cluster_id = cluster_id
        self._has_other_brokers = has_other_brokers
        self._settled = asyncio.Event()
        self._refusal: KafkaError | None = None
        self._loader = MetadataLoader()
        self.image = self._loader.image
        """The last image whose records are committed: what clients may see."""
        self._committed = self._loader.state()
        self._clock = clock
        self._background = background
        self._may_lead = may_lead
        self._restarted: set[int] = set()
        """This node's own broker until it has registered: its last incarnation has ended."""
        self._claimed: int | None = None
        """The end of the log when this node was elected, while records before it are missing."""
        self._listeners: list[Listener] = []
        self._pending: list[_Pending] = []
        self.commits = Durations()
        """The times from a decision to its commit."""
        self._snapshotting: asyncio.Task[None] | None = None

    @property
    def log(self) -> MetadataLog:
        return self.quorum.log

    @property
    def failure(self) -> KafkaStorageError | None:
        """The failure of the metadata log, after which the node must stop."""
        return self.quorum.failure

    def on_published(self, callback: Listener) -> None:
        """Call back, on the loop, with each new image and what changed."""
        self._listeners.append(callback)

    async def ask(
        self, request: Message, version: int | None = None, caller: Caller | None = None
    ) -> Any:
        """Decide a request; returns the response when the records are committed and published.

        `caller` is the client that sent the request; None if this node asks for itself.
        """
        now_ms, sessions = self._clock.monotonic_ms(), self.sessions
        if sessions is not None:
            sessions.heard(request, now_ms)
        context = Context(
            node_id=self.quorum.node_id,
            settings=self.settings,
            defaults=ClusterDefaults.of(self.settings),
            version=request.VERSIONS[-1] if version is None else version,
            next_offset=self.log.end_offset,
            kraft_version=self.quorum.kraft_version,
            now_ms=now_ms,
            wall_ms=self._clock.now_ms(),
            sessions=None if sessions is None else sessions.view,
            cluster_id=self._cluster_id,
            access=self.access_of(caller),
            mutations=None if caller is None else self._mutations_of(request, version, caller),
        )
        raised = None
        if request.API_KEY == ApiKey.UPDATE_FEATURES:
            from headrace.controller.features import raised_kraft_version  # Rarely needed.

            raised = raised_kraft_version(request, context.kraft_version)
        if raised is not None and self.is_leading:
            decide(self._loader.image, request, context)  # Refused before anything is written.
            self.quorum.upgrade(raised)
        reply, done = self._write(lambda image: decide(image, request, context))
        if raised is not None:
            done = self._promise(None)
        if sessions is not None:
            sessions.decided(request, reply, self.log.end_offset, now_ms)
        if done is not None:
            await done
        if context.mutations is not None:
            reply.throttle_time_ms = context.mutations.throttle_ms(self._clock.monotonic_ms())
        return reply

    def access_of(self, caller: Caller | None) -> Access:
        """Return the rights of a caller; None is this node itself, which may do everything."""
        return OPEN if caller is None else Access(self.authorizer, caller)

    def _mutations_of(
        self, request: Message, version: int | None, caller: Caller
    ) -> "Mutations | None":
        newest = request.VERSIONS[-1]
        return self._mutation_quotas.of(
            self.image, request.API_KEY, newest if version is None else version, caller
        )

    async def submit(self, decide: Decide[T]) -> T:
        """Propose a decision; returns its reply when the records are committed and published."""
        reply, done = self._write(decide)
        if done is not None:
            await done
        return reply

    def broker_restarts(self, broker_id: int) -> None:
        """Let this node's own broker register at once: its last incarnation has ended."""
        self._restarted.add(broker_id)

    def broker_registered(self, broker_id: int) -> None:
        """Give this node's own broker a session like any other from now on."""
        self._restarted.discard(broker_id)

    async def wait_until_active(self) -> None:
        """Wait until this controller decides; raise if it cannot lead the cluster."""
        await self._settled.wait()
        if self._refusal is not None:
            raise self._refusal

    # The quorum's calls.

    def led_by(self, leadership: Leadership) -> None:
        """Follow a new leader or epoch; this node decides once it has every record of the log."""
        self._resign()
        if self._may_lead and leadership.leader_id == self.quorum.node_id:
            self._claimed = self.log.end_offset

    def committed(self, high_watermark: int) -> None:
        """Publish what is committed, and answer the decisions that waited for it."""
        if self.is_leading:
            self._keep_promises(high_watermark)
        else:
            self._follow(high_watermark)
            if self._claimed is not None and high_watermark >= self._claimed:
                self._claimed = None
                self._activate()
        if self.log.has_grown():
            self._begin_snapshot()

    def failed(self, error: KafkaStorageError) -> None:
        """Fail everything that waits, because the metadata log has failed."""
        self.is_leading = False
        self._refusal = error
        self._settled.set()
        lost, self._pending = self._pending, []
        _fail_all(lost, error)

    def _follow(self, high_watermark: int) -> None:
        """Replay committed records of another leader, or of an earlier leadership."""
        if high_watermark <= self._loader.next_offset:
            return
        self.log.replay(self._loader, high_watermark)
        publication = self._loader.publish()
        self._committed = self._loader.state()
        self._publish(publication)

    def _activate(self) -> None:
        """Decide from now on. An empty log is filled, and an unfinished transaction is aborted."""
        try:
            check_features(self.image, SUPPORTED)
        except KafkaError as error:
            self._refusal = error
            self._settled.set()
            return
        self.is_leading = True
        in_transaction = self._loader.transaction_offset is not None
        defaults = ClusterDefaults.of(self.settings)
        bootstrap = self.log.read_bootstrap() if self.image.is_empty else ()
        activation = activate(self.image, bootstrap, defaults, in_transaction=in_transaction)
        if activation.records:
            self._promise(self._append(activation.records))
        if self._has_other_brokers:
            from headrace.controller.sessions import BrokerSessions  # Not if the broker is alone.

            now_ms = self._clock.monotonic_ms()
            timeout_ms = self.settings.broker_session_timeout_ms
            self.sessions = BrokerSessions(
                self._loader.image, now_ms, timeout_ms, restarted=self._restarted
            )
        self._settled.set()
        _log.info("controller active", extra={"epoch": self.quorum.epoch})

    def _resign(self) -> None:
        """Stop deciding: drop uncommitted records, and fail the requests that wait for them."""
        self._claimed = None
        if not self.is_leading:
            return
        self.is_leading = False
        self.sessions = None
        self._settled.clear()
        self._loader = MetadataLoader.resume(self._committed)
        lost, self._pending = self._pending, []
        _fail_all(lost, NotController("this node lost the leadership of the metadata quorum"))

    async def close(self) -> None:
        """Finish a snapshot under way."""
        if self._snapshotting is not None:
            await asyncio.wait([self._snapshotting])

    # Snapshots.

    async def maintain(self) -> None:
        """Take a snapshot if it is due, and delete old ones.

        Kafka's controller also writes a NoOpRecord twice a second, so that followers see the
        high watermark move. A quorum of one has no followers, and an idle node does not use the
        disk.
        """
        if self.log.has_aged(self._clock.now_ms()):
            self._begin_snapshot()
        if self._snapshotting is not None:
            await asyncio.wait([self._snapshotting])  # Cancelling the wait does not cancel it.
        try:
            self.log.clean(self._clock.now_ms())
        except (OSError, KafkaStorageError) as error:
            _log.warning("old metadata snapshots not deleted", extra={"error": str(error)})

    def _begin_snapshot(self) -> None:
        is_idle = self._snapshotting is None or self._snapshotting.done()
        newest = self.log.newest_snapshot
        is_new = self.image.offset >= (newest.end_offset if newest is not None else 0)
        if is_idle and is_new and self.failure is None:
            task = asyncio.get_running_loop().create_task(self._snapshot(self.image))
            self._snapshotting = task

    async def _snapshot(self, image: MetadataImage) -> None:
        plan = self.log.plan_snapshot(image, self.quorum.history, self._clock.now_ms())
        try:
            await self._background(plan.run)
            self.log.snapshot_taken(plan)
        except (OSError, KafkaStorageError) as error:
            # The log still has every record, and the next call of `maintain` tries again.
            _log.warning(
                "metadata snapshot not written",
                extra={"snapshot": plan.id.file_name, "error": str(error)},
            )

    # Writing.

    def _write(self, decide: Decide[T]) -> tuple[T, asyncio.Future[None] | None]:
        if self.failure is not None:
            raise self.failure
        if not self.is_leading:
            raise NotController("another node leads the metadata quorum")
        decision = decide(self._loader.image)
        if not decision.records:
            # The reply may rest on records that are not committed yet.
            return decision.reply, self._promise(None) if self._pending else None
        return decision.reply, self._promise(self._append(decision.records))

    def _append(self, records: Sequence[VersionedRecord]) -> tuple[int, Publication]:
        """Propose records and replay them; on an error neither has happened."""
        prepared = self.log.prepare(records, self.quorum.epoch, self._clock.now_ms())
        before = self._loader.state()
        try:
            # Replayed first: a record that cannot be replayed must never get into the log.
            for one in prepared:
                self._loader.replay(one.batch)
            publication = self._loader.publish()
            end_offset = self.quorum.propose(bytearray().join(one.data for one in prepared))
        except BaseException:
            self._loader = MetadataLoader.resume(before)
            raise
        if not self.is_leading:  # The leader of the quorum has just removed itself.
            raise NotController("this node lost the leadership of the metadata quorum")
        return end_offset, publication

    def _promise(self, appended: tuple[int, Publication] | None) -> asyncio.Future[None]:
        """Add a pending decision, which waits for all records written so far."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        end_offset, publication = appended or (self.log.end_offset, None)
        began_ms = self._clock.monotonic_ms()
        self._pending.append(
            _Pending(end_offset, publication, self._loader.state(), done, began_ms)
        )
        return done

    def _keep_promises(self, high_watermark: int) -> None:
        """Publish and answer the decisions that are committed."""
        count = sum(one.end_offset <= high_watermark for one in self._pending)
        committed, self._pending = self._pending[:count], self._pending[count:]
        now_ms = self._clock.monotonic_ms()
        for _, publication, state, done, began_ms in committed:
            self._committed = state
            if publication is not None:
                self.commits.add_ns((now_ms - began_ms) * 1_000_000)
                self._publish(publication)
            if not done.done():
                done.set_result(None)

    def _publish(self, publication: Publication) -> None:
        self.image = publication.image
        for listener in self._listeners:
            try:
                listener(publication.delta, publication.image)
            except Exception:
                # A failing listener must not keep the image from the others.
                _log.exception(
                    "metadata listener failed", extra={"offset": publication.image.offset}
                )


def _fail_all(lost: Sequence[_Pending], error: KafkaError) -> None:
    for pending in lost:
        if not pending.done.done():
            pending.done.set_exception(error)
            pending.done.exception()  # Marked as seen: the request may be cancelled already.
