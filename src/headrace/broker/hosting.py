"""Keeps this node's logs and settings in step with the metadata: what is published is carried out.

The image says what should be; here it is made so: partitions get logs, deleted topics lose
theirs, a changed config reaches every log that it governs. It is the same code at the start, when
everything is new, and later, when a little is.

A new partition's files are made in passing, a few per turn of the loop, or when the first
request wants them: a topic of a thousand partitions must not keep other clients waiting. The
metadata comes first in any case, so a partition without files is one that has no records yet.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from headrace.errors import KafkaStorageError
from headrace.metadata.image import ConfigResource, ResourceType
from headrace.protocol.uuids import ZERO, Uuid
from headrace.storage.directories import DirectoryLost, Wanted
from headrace.storage.room import NoRoom
from headrace.storage.topic_partition import TopicPartition

if TYPE_CHECKING:
    from headrace.broker.configs.topic_configs import TopicConfigs
    from headrace.broker.delayed import WakeUps
    from headrace.broker.partitions import Partition, Partitions
    from headrace.metadata.delta import ImageDelta
    from headrace.metadata.image import MetadataImage, TopicImage
    from headrace.runtime.metrics import Metrics
    from headrace.storage.directories import LogDirectories

_log = logging.getLogger(__name__)

_MADE_PER_TURN = 8

_EXAMPLES_MAX = 3

Assignments = dict[tuple[Uuid, int], Uuid]
"""Topic id and partition to the id of the log directory that holds it."""


class _Lost(msgspec.Struct):
    """The partitions of a directory that is not there, as far as a line of the log has room."""

    why: str
    count: int = 0
    examples: list[str] = []

    def add(self, name: str) -> None:
        self.count += 1
        if len(self.examples) < _EXAMPLES_MAX:
            self.examples.append(name)


class Hosting:
    """Carries out the images of the metadata on this node's partitions."""

    def __init__(
        self,
        node_id: int,
        partitions: "Partitions",
        directories: "LogDirectories",
        configs: "TopicConfigs",
        metrics: "Metrics",
        wake_ups: "WakeUps",
        *,
        forget_shapes: "Callable[[], None]",
        soon: "Callable[[Callable[[], None]], object]",
        report: "Callable[[Assignments], None]",
    ) -> None:
        self._node_id = node_id
        self._partitions = partitions
        self._directories = directories
        self._configs = configs
        self._metrics = metrics
        self._wake_ups = wake_ups
        self._forget_shapes = forget_shapes
        self._soon = soon
        self._report = report
        self._to_make: deque[Partition] = deque()
        self._without_room: deque[Partition] = deque()
        self._assigned: Assignments = {}
        self._lost: dict[Uuid, _Lost] = {}
        self._image: MetadataImage

    def take_up(self, image: "MetadataImage") -> None:
        """Host everything that the image gives to this node; at the start."""
        self._image = image
        self._configs.relayer(image)
        threads = self._configs.settings.num_recovery_threads_per_data_dir
        self._directories.recover(self._wanted(image), threads)
        for topic in image.topics.values():
            self._host(topic, image)

    def _wanted(self, image: "MetadataImage") -> list[Wanted]:
        return [
            Wanted(TopicPartition(topic.name, index), topic.id, self._configs.of(image, topic.name))
            for topic in image.topics.values()
            for index, partition in enumerate(topic.partitions)
            if self._node_id in partition.replicas
        ]

    def apply(self, delta: "ImageDelta", image: "MetadataImage") -> None:
        """Carry out what changed. Deletions first: a new topic may have an old one's name."""
        self._image = image
        self._forget_shapes()
        for gone in delta.topics_deleted:
            self._drop(gone)
            _log.info("topic %s is deleted", gone.name)
        self._reconfigure(delta.configs_changed, image)
        for topic_id in (*delta.topics_created, *delta.topics_changed):
            topic = image.topics_by_id.get(topic_id)
            if topic is not None:
                self._host(topic, image)
        for topic_id in delta.topics_created:
            topic = image.topics_by_id.get(topic_id)
            if topic is not None:
                _log.info("topic %s has %d partitions", topic.name, len(topic.partitions))

    def _host(self, topic: "TopicImage", image: "MetadataImage") -> None:
        hosted = self._partitions.host(topic, self._node_id, self._metrics.topic(topic.name))
        for partition in hosted.partitions:
            if partition is None or partition.log is not None or partition.make_log is not None:
                continue
            if self._directories.has_files_of(TopicPartition(topic.name, partition.index)):
                self._try_to_attach(partition)
            else:
                partition.make_log = self._attach
                self._make_soon(partition)

    def try_again(self) -> None:
        """Make some of the logs for which there was no room; if there is now, all of them.

        A request that wants one of them tries by itself. This is for those that nobody asks for.
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
        if self._to_make:
            self._soon(self._make_some)
        else:
            self._tell_lost()

    def _tell_lost(self) -> None:
        """A line for each directory, not for each of the thousands that may have lain there."""
        for lost in self._lost.values():
            more = ", ..." if lost.count > len(lost.examples) else ""
            _log.error(
                "%d partitions are offline (%s%s): %s",
                lost.count,
                ", ".join(lost.examples),
                more,
                lost.why,
            )
        self._lost.clear()

    def _try_to_attach(self, partition: "Partition") -> bool:
        try:
            self._attach(partition)
        except NoRoom:
            partition.make_log = self._attach
            self._without_room.append(partition)
        except DirectoryLost as error:
            lost = self._lost.setdefault(error.directory_id, _Lost(str(error)))
            lost.add(f"{partition.topic.name}-{partition.index}")
        except KafkaStorageError as error:
            _log.error("%s-%d is offline: %s", partition.topic.name, partition.index, error)
        return partition.log is not None

    def _attach(self, partition: "Partition") -> None:
        name = TopicPartition(partition.topic.name, partition.index)
        config = self._configs.of(self._image, name.topic)
        # Reserved ids say that the metadata leaves the choice to us.
        wanted = partition.image.directory_of(self._node_id) or ZERO
        log = self._directories.log_of(name, partition.topic_id, config, directory_id=wanted)
        # With one replica all that survived is committed; after a crash the checkpoint lags behind.
        log.advance_high_watermark(log.log_end_offset)
        partition.log = log
        partition.make_log = None
        self._note_directory(partition, wanted, self._directories.directory_of(log).id)

    def _note_directory(self, partition: "Partition", named: Uuid, actual: Uuid) -> None:
        """Have the metadata say where the log is, if it does not: the next start relies on it."""
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
            if partition is None:
                continue
            partition.make_log = None
            if partition.waiters:
                self._wake_ups.changed(partition)
            if partition.log is not None:
                self._directories.delete(partition.log)
        self._metrics.forget_topic(topic.name)

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
