"""Applies published metadata to this node: creates and deletes logs, and updates their configs.

The same code serves the start, when everything is new, and every later change.

The files of a new partition are created a few per turn of the loop, or by the first request that
needs them: a topic of a thousand partitions must not delay other clients. The metadata is written
first, so a partition without files has no records yet.

The order is Kafka's: deletions, partitions to lead, partitions to follow, and fetchers last. A
fetcher stops at once when its partition changes, so a new leader's log does not change any more
when its epoch begins.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import msgspec

from headrace.errors import KafkaStorageError
from headrace.metadata.image import ConfigResource, ResourceType
from headrace.protocol.uuids import ZERO, Uuid
from headrace.storage.directories import DirectoryLost, Wanted
from headrace.storage.free_space import DiskFull
from headrace.storage.topic_partition import TopicPartition

if TYPE_CHECKING:
    from headrace.broker.configs.topic_configs import TopicConfigs
    from headrace.broker.metrics.counters import Metrics
    from headrace.metadata.delta import ImageDelta
    from headrace.metadata.image import MetadataImage, TopicImage
    from headrace.replication.partition import HostedTopic, Partition
    from headrace.replication.partitions import Partitions, TopicChanges
    from headrace.runtime.clock import Clock
    from headrace.storage.directories import LogDirectories

_log = logging.getLogger(__name__)

_MADE_PER_TURN = 8
_TURN_S = 0.004

_EXAMPLES_MAX = 3

Assignments = dict[tuple[Uuid, int], Uuid]
"""Topic id and partition to the id of the log directory that holds it."""


class _Lost(msgspec.Struct):
    """The partitions of a missing directory: their count, and examples for the log."""

    why: str
    count: int = 0
    examples: list[str] = []

    def add(self, name: str) -> None:
        self.count += 1
        if len(self.examples) < _EXAMPLES_MAX:
            self.examples.append(name)


class Followers(Protocol):
    """Fetches the partitions that other nodes lead."""

    def follow(self, partition: "Partition") -> None: ...

    def stop(self, partition: "Partition") -> None: ...


class Hosting:
    """Applies images of the metadata to the partitions of this node."""

    def __init__(
        self,
        node_id: int,
        partitions: "Partitions",
        directories: "LogDirectories",
        configs: "TopicConfigs",
        metrics: "Metrics",
        clock: "Clock",
        *,
        followers: Followers | None = None,
        forget_shapes: "Callable[[Collection[HostedTopic] | None], None]",
        soon: "Callable[[Callable[[], None]], object]",
        report: "Callable[[Assignments], None]",
    ) -> None:
        self._node_id = node_id
        self._partitions = partitions
        self._directories = directories
        self._configs = configs
        self._metrics = metrics
        self._clock = clock
        self._followers = followers
        """None on a node that leads every partition it has."""
        self._forget_shapes = forget_shapes
        self._soon = soon
        self._report = report
        self._to_make: deque[Partition] = deque()
        self._without_room: deque[Partition] = deque()
        self._assigned: Assignments = {}
        self._lost: dict[Uuid, _Lost] = {}
        self._to_follow: dict[Partition, None] = {}
        self._is_loading = True
        self._image: MetadataImage

    async def load(self, image: "MetadataImage") -> None:
        """Host all partitions that the image assigns to this node; called once, at the start.

        Logs that need recovery are recovered in threads, and other tasks run meanwhile: the
        node's heartbeats must go on. The caller holds back newer images until the end.
        """
        self._image = image
        self._configs.relayer(image)
        threads = self._configs.settings.num_recovery_threads_per_data_dir
        self._directories.recover(self._wanted(image), threads)
        began = perf_counter()
        for topic in image.topics.values():
            taken = self._host(topic)
            for partition in taken.topic.partitions:
                if partition is None:
                    continue
                await self._recovered(partition)
                self._give_log(partition)
                if perf_counter() - began > _TURN_S:
                    await asyncio.sleep(0)
                    began = perf_counter()
        self._is_loading = False
        self._start_following()

    async def _recovered(self, partition: "Partition") -> None:
        """Wait for the thread that recovers a log; its error is raised when the log is loaded."""
        recovery = self._directories.recovery_of(_name_of(partition))
        if recovery is not None and not recovery.done():
            waiting = asyncio.wrap_future(recovery)
            await asyncio.wait([waiting])
            waiting.exception()  # Marked as seen.

    def _wanted(self, image: "MetadataImage") -> list[Wanted]:
        return [
            Wanted(TopicPartition(topic.name, index), topic.id, self._configs.of(image, topic.name))
            for topic in image.topics.values()
            for index, partition in enumerate(topic.partitions)
            if self._node_id in partition.replicas
        ]

    def apply(self, delta: "ImageDelta", image: "MetadataImage") -> None:
        """Apply a change: deletions, then partitions to lead, then partitions to follow.

        Deletions come first because a new topic may have the name of an old one.
        """
        self._image = image
        self._forget_shapes_of(delta)
        for gone in delta.topics_deleted:
            self._drop(gone)
            _log.info("topic deleted", extra={"topic": gone.name})
        self._reconfigure(delta.configs_changed, image)
        changed = [
            self._host(topic)
            for topic_id in (*delta.topics_created, *delta.topics_changed)
            if (topic := image.topics_by_id.get(topic_id)) is not None
        ]
        for taken in changed:
            for partition in taken.gone:
                self._remove(partition)
        for taken in changed:
            for partition in (*taken.led, *taken.followed):
                self._stop_following(partition)
        for taken in changed:
            for partition in taken.led:
                if partition.in_sync is not None:
                    self._make_soon(partition)
        for taken in changed:
            for hosted in taken.topic.partitions:
                if hosted is not None:
                    self._give_log(hosted)
        for taken in changed:
            for partition in taken.followed:
                self._follow_soon(partition)
        for topic_id in delta.topics_created:
            topic = image.topics_by_id.get(topic_id)
            if topic is not None:
                _log.info(
                    "topic created",
                    extra={"topic": topic.name, "partitions": len(topic.partitions)},
                )

    def _forget_shapes_of(self, delta: "ImageDelta") -> None:
        """Forget the produce shapes of topics that change; a new topic has none yet."""
        configs = list(delta.configs_changed)
        if any(one.type == ResourceType.BROKER for one in configs):
            self._forget_shapes(None)
            return
        hosted = [
            *map(self._partitions.by_id.get, (one.id for one in delta.topics_deleted)),
            *map(self._partitions.by_id.get, delta.topics_changed),
            *(
                self._partitions.by_wire_name.get(one.name.encode())
                for one in configs
                if one.type == ResourceType.TOPIC
            ),
        ]
        if touched := [one for one in hosted if one is not None]:
            self._forget_shapes(touched)

    def _host(self, topic: "TopicImage") -> "TopicChanges":
        return self._partitions.host(
            topic, self._node_id, self._metrics.topic(topic.name), self._clock.monotonic_ms()
        )

    def _give_log(self, partition: "Partition") -> None:
        """Open the log that a partition has already; a new one is made in a later turn."""
        if partition.log is not None or partition.make_log is not None:
            return
        if self._directories.has_files_of(_name_of(partition)):
            self._try_to_attach(partition)
        else:
            partition.make_log = self._attach
            self._make_soon(partition)

    def _follow_soon(self, partition: "Partition") -> None:
        """Have a partition fetched from the next turn on, when this publication is applied."""
        if partition.log is not None and not partition.is_led:
            if not self._to_follow and not self._is_loading:
                self._soon(self._start_following)
            self._to_follow[partition] = None

    def _start_following(self) -> None:
        """Start fetching partitions, for some milliseconds per turn: there may be thousands."""
        began = perf_counter()
        while self._to_follow:
            partition = next(iter(self._to_follow))
            del self._to_follow[partition]
            if self._followers is not None:
                self._followers.follow(partition)
            if self._to_follow and perf_counter() - began > _TURN_S:
                self._soon(self._start_following)
                return

    def _stop_following(self, partition: "Partition") -> None:
        self._to_follow.pop(partition, None)
        if self._followers is not None:
            self._followers.stop(partition)

    def try_again(self) -> None:
        """Retry some of the logs for which a disk had no room, and all of them once it has.

        A request for one of them retries as well; this serves partitions without requests.
        """
        waiting = self._without_room
        for _ in range(min(_MADE_PER_TURN, len(waiting))):
            partition = waiting.popleft()
            if partition.make_log is not None and self._try_to_attach(partition):
                while waiting:
                    self._make_soon(waiting.popleft())
                return
        self._tell_lost()

    def _make_soon(self, partition: "Partition") -> None:
        if not self._to_make:
            self._soon(self._make_some)
        self._to_make.append(partition)

    def _make_some(self) -> None:
        for _ in range(min(_MADE_PER_TURN, len(self._to_make))):
            partition = self._to_make.popleft()
            if partition.make_log is not None:
                self._try_to_attach(partition)
            elif partition.in_sync is not None:
                self._try_to_enter_epoch(partition)
        if self._to_make:
            self._soon(self._make_some)
        else:
            self._tell_lost()

    def _tell_lost(self) -> None:
        """Log one line for each directory, which may have held thousands of partitions."""
        for lost in self._lost.values():
            examples = ",".join(lost.examples)
            _log.error(
                "partitions offline",
                extra={"count": lost.count, "examples": examples, "error": lost.why},
            )
        self._lost.clear()

    def _try_to_attach(self, partition: "Partition") -> bool:
        try:
            self._attach(partition)
        except DiskFull:
            partition.make_log = self._attach
            self._without_room.append(partition)
        except DirectoryLost as error:
            lost = self._lost.setdefault(error.directory_id, _Lost(str(error)))
            lost.add(f"{partition.topic.name}-{partition.index}")
        except KafkaStorageError as error:
            _log_offline(partition, error)
        return partition.log is not None

    def _try_to_enter_epoch(self, partition: "Partition") -> None:
        try:
            partition.enter_epoch()
        except KafkaStorageError as error:
            _log_offline(partition, error)

    def _attach(self, partition: "Partition") -> None:
        name = _name_of(partition)
        config = self._configs.of(self._image, name.topic)
        # Reserved ids leave the choice of the directory to the broker.
        wanted = partition.image.directory_of(self._node_id) or ZERO
        log = self._directories.log_of(name, partition.topic_id, config, directory_id=wanted)
        partition.attach(log, self._clock.monotonic_ms())
        self._note_directory(partition, wanted, self._directories.directory_of(log).id)
        self._follow_soon(partition)

    def _note_directory(self, partition: "Partition", named: Uuid, actual: Uuid) -> None:
        """Report the directory of a log unless the metadata has it; the next start relies on it."""
        if partition.image.directories and named != actual:
            if not self._assigned:
                self._soon(self._report_directories)
            self._assigned[partition.topic_id, partition.index] = actual

    def _report_directories(self) -> None:
        assigned, self._assigned = self._assigned, {}
        self._report(assigned)

    def _drop(self, topic: "TopicImage") -> None:
        hosted = self._partitions.drop(topic.id)
        if hosted is None:
            return
        for partition in hosted.partitions:
            if partition is not None:
                self._remove(partition)
        self._metrics.forget_topic(topic.name)

    def _remove(self, partition: "Partition") -> None:
        """Delete the log of a replica that was moved away from this node."""
        self._stop_following(partition)
        partition.leave()
        if partition.log is not None:
            self._directories.delete(partition.log)

    def _reconfigure(self, changed: "Iterable[ConfigResource]", image: "MetadataImage") -> None:
        resources = list(changed)
        topics: Iterable[str] = [r.name for r in resources if r.type == ResourceType.TOPIC]
        if any(r.type == ResourceType.BROKER for r in resources):
            self._configs.relayer(image)
            topics = list(image.topics)
        for topic in topics:
            hosted = self._partitions.by_wire_name.get(topic.encode())
            if hosted is None:
                continue
            config = self._configs.of(image, topic)
            for partition in hosted.partitions:
                if partition is not None and partition.log is not None:
                    partition.log.reconfigure(config)


def _name_of(partition: "Partition") -> TopicPartition:
    return TopicPartition(partition.topic.name, partition.index)


def _log_offline(partition: "Partition", error: KafkaStorageError) -> None:
    _log.error(
        "partition offline",
        extra={
            "topic": partition.topic.name,
            "partition": partition.index,
            "error": str(error),
        },
    )
