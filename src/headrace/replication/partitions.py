"""The partitions of this node, by the names and ids that requests use."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from headrace.errors import UnknownTopicOrPartition
from headrace.protocol.uuids import Uuid
from headrace.replication.partition import Changed, HostedTopic, Partition, Transition

if TYPE_CHECKING:
    from headrace.metadata.image import TopicImage
    from headrace.replication.metrics import TopicMetrics


class TopicChanges(NamedTuple):
    """A topic with a new image, and the changes to its partitions here, in the order to apply."""

    topic: HostedTopic
    gone: list[Partition]
    led: list[Partition]
    followed: list[Partition]


class Partitions:
    """Every hosted partition, by the names that requests use."""

    def __init__(self, changed: Changed) -> None:
        self.changed = changed
        self.by_wire_name: dict[bytes, HostedTopic] = {}
        self.by_id: dict[Uuid, HostedTopic] = {}

    def __iter__(self) -> Iterator[Partition]:
        for topic in self.by_wire_name.values():
            for partition in topic.partitions:
                if partition is not None:
                    yield partition

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def led(self, topic: str, index: int) -> Partition:
        """Return a partition that this node leads."""
        return self._topic(topic).led(index)

    def hosted(self, topic: str, index: int) -> Partition:
        """Return a partition with a replica here, led or not."""
        return self._topic(topic).hosted(index)

    def _topic(self, name: str) -> HostedTopic:
        hosted = self.by_wire_name.get(name.encode())
        if hosted is None:
            raise UnknownTopicOrPartition(f"there is no topic {name}")
        return hosted

    def host(
        self, image: "TopicImage", node_id: int, metrics: "TopicMetrics", now_ms: int
    ) -> TopicChanges:
        """Apply a new or changed topic image; the caller attaches logs and enters epochs."""
        topic = self.by_id.get(image.id)
        if topic is None:
            topic = HostedTopic(image, node_id, metrics, self.changed)
            self.by_id[topic.id] = self.by_wire_name[topic.wire_name] = topic
        topic.image = image
        taken = TopicChanges(topic, [], [], [])
        known = topic.partitions
        for index, partition_image in enumerate(image.partitions):
            current = known[index] if index < len(known) else None
            if node_id not in partition_image.replicas:
                if current is not None:
                    taken.gone.append(current)
                current = None
            else:
                if current is None:
                    current = Partition(topic, index, partition_image)
                elif current.image is partition_image:
                    continue
                match current.follow(partition_image, now_ms):
                    case Transition.BECOMES_LEADER | Transition.LEADS_NEW_EPOCH:
                        taken.led.append(current)
                    case Transition.BECOMES_FOLLOWER:
                        taken.followed.append(current)
                    case Transition.STAYS:
                        pass
            known[index : index + 1] = [current]
        return taken

    def drop(self, topic_id: Uuid) -> HostedTopic | None:
        """Forget a deleted topic; a new one of the same name has another id."""
        topic = self.by_id.pop(topic_id, None)
        if topic is not None and self.by_wire_name.get(topic.wire_name) is topic:
            del self.by_wire_name[topic.wire_name]
        return topic
