"""The invariants of a cluster, checked whenever something is committed, and from time to time."""

from typing import TYPE_CHECKING, Any

from headrace.metadata.image_records import image_records
from headrace.protocol.batches import read_header
from headrace.protocol.codec import encode
from headrace.protocol.metadata_topic import METADATA_TOPIC
from headrace.storage.log import Log
from headrace.storage.topic_partition import TopicPartition
from tests.builders.simulated.processes import Broken

if TYPE_CHECKING:
    from tests.builders.simulated.cluster import Cluster, SimulatedNode

_CHUNK = 1 << 20


class Checker:
    """Everything that any node has ever committed, and the rules that must hold for it."""

    def __init__(self, cluster: "Cluster") -> None:
        self.cluster = cluster
        self.broken: list[str] = []
        self.committed: dict[TopicPartition, dict[int, bytes]] = {}
        """The batches below the high watermark of any replica, by their base offsets."""
        self.ends: dict[TopicPartition, tuple[int, int]] = {}
        """The end of the committed records, and the epoch of the leader that committed the last."""
        self._checked: dict[Log, int] = {}
        self._marks: dict[Any, int] = {}
        self._leaders: dict[Any, int] = {}
        self._digests: dict[int, int] = {}
        self._states: dict[str, str] = {}
        self.newest: Any = None
        """The newest committed image of any node."""

    def require(self, holds: bool, what: str) -> None:
        if not holds:
            self.broken.append(what)
            self.cluster.note(f"BROKEN: {what}")
            self.cluster.loop.failure = Broken(what)

    # Records.

    def advanced(self, log: Log) -> None:
        """Compare what a replica takes for committed with what any other ever did."""
        name = log.topic_partition
        machine = log.directory.split("/")[1]
        known = self.committed.setdefault(name, {})
        offset = max(self._checked.get(log, 0), log.log_start_offset)
        end = log.high_watermark
        while offset < end:
            data = log.read(offset, _CHUNK, end).read()
            if not data:
                break
            position = 0
            while position < len(data):
                header = read_header(data, position)
                batch = data[position : position + header.size]
                before = known.setdefault(header.base_offset, batch)
                self.require(
                    before == batch,
                    f"{machine} has other records of {name} at {header.base_offset} than were "
                    "committed",
                )
                offset = header.next_offset
                position += header.size
        self._checked[log] = offset
        committed_end, _ = self.ends.get(name, (0, -1))
        node = self.cluster.nodes_by_machine[machine]
        if end > committed_end and node.node is not None:
            partition = _partition_of(node, name)
            epoch = partition.leader_epoch if partition is not None else -1
            self.ends[name] = end, epoch
            if partition is not None and partition.in_sync is not None:
                self._check_replicas(name, end, partition.in_sync.committed)

    def truncated(self, log: Log, before: dict[int, bytes]) -> None:
        """A replica keeps what is committed: it diverges from its leader only after that."""
        known = self.committed.get(log.topic_partition, {})
        machine = log.directory.split("/")[1]
        for base_offset, batch in before.items():
            self.require(
                base_offset < log.log_end_offset or known.get(base_offset) != batch,
                f"{machine} truncates {log.topic_partition} to {log.log_end_offset}, and the batch "
                f"at {base_offset} is committed",
            )

    def _check_replicas(self, name: TopicPartition, end: int, isr: frozenset[int]) -> None:
        """Every in-sync replica has what is committed, unless a power cut took it."""
        for node in self.cluster.nodes:
            if node.id not in isr or node.node is None or node.has_lost_data:
                continue
            partition = _partition_of(node, name)
            if partition is None or partition.log is None:
                continue
            self.require(
                partition.log.log_end_offset >= end,
                f"{name} is committed up to {end}, and in-sync replica {node.id} ends at "
                f"{partition.log.log_end_offset}",
            )

    # Metadata.

    def published(self, node: "SimulatedNode", image: Any) -> None:
        """Compare an image with that of any other node at the same offset."""
        digest = hash(
            tuple(
                sorted(
                    (type(one).__name__, bytes(encode(one, v))) for one, v in image_records(image)
                )
            )
        )
        if image.offset not in self._digests:
            self._note_changes(image)
        if self.newest is None or image.offset > self.newest.offset:
            self.newest = image
            for topic in image.topics.values():
                for index, partition in enumerate(topic.partitions):
                    name = TopicPartition(topic.name, index)
                    end, _ = self.ends.get(name, (0, -1))
                    self._check_replicas(name, end, frozenset(partition.isr))
        known = self._digests.setdefault(image.offset, digest)
        self.require(known == digest, f"two images of the metadata at offset {image.offset}")
        self._check_majority(node, image.offset)

    def _note_changes(self, image: Any) -> None:
        """Keep the changes of leaders, replicas and brokers in the history."""
        states = {
            f"broker {one.id}": f"epoch {one.epoch}{' fenced' if one.fenced else ''}"
            for one in image.brokers.values()
        } | {
            f"{topic.name}-{index}": f"leader {one.leader} epoch {one.leader_epoch} ISR {one.isr}"
            f" ELR {one.elr} last {one.last_known_elr}"
            for topic in image.topics.values()
            for index, one in enumerate(topic.partitions)
        }
        for name, state in states.items():
            if self._states.get(name) != state:
                self.cluster.note(f"  {image.offset}: {name} has {state}")
        self._states = states

    def _check_majority(self, node: "SimulatedNode", offset: int) -> None:
        count = sum(one.durable_metadata_end() > offset for one in self.cluster.nodes)
        self.require(
            2 * count > len(self.cluster.nodes),
            f"node {node.id} published metadata up to offset {offset}, which {count} have synced",
        )

    # From time to time.

    def look(self) -> None:
        for node in self.cluster.nodes:
            if node.node is None or node.process is None or not node.process.is_alive:
                continue
            quorum_node = getattr(node.node, "quorum_node", None)
            if quorum_node is not None and hasattr(quorum_node.quorum, "_core"):
                quorum = quorum_node.quorum
                self._rises((node.process, "epoch"), quorum.epoch)
                self._rises((node.process, "metadata"), quorum.log.high_watermark)
                if quorum.is_leader:
                    self._leads("metadata", quorum.epoch, node.id)
            for partition in node.node.partitions:
                log = partition.log
                if log is None:
                    continue
                name = log.topic_partition
                self._rises((log, "high watermark"), log.high_watermark, str(name))
                if partition.is_led:
                    self._leads(str(name), partition.leader_epoch, node.id)
                    end, epoch = self.ends.get(name, (0, -1))
                    self.require(
                        log.log_end_offset >= end or partition.leader_epoch <= epoch,
                        f"{name} was committed up to {end} in epoch {epoch}, and its leader "
                        f"{node.id} of epoch {partition.leader_epoch} ends at "
                        f"{log.log_end_offset}",
                    )

    def _rises(self, key: Any, value: int, what: str = "") -> None:
        before = self._marks.get(key, value)
        self.require(value >= before, f"{key[1]} {what} went back from {before} to {value}")
        self._marks[key] = value

    def _leads(self, what: str, epoch: int, node_id: int) -> None:
        known = self._leaders.setdefault((what, epoch), node_id)
        self.require(known == node_id, f"nodes {known} and {node_id} lead {what} in epoch {epoch}")

    # At the end.

    def replicas_are_equal(self) -> str:
        """Return how the replicas differ; nothing if they are equal and fully committed."""
        for name in self.committed:
            if name.topic == METADATA_TOPIC:
                continue
            contents = []
            for node in self.cluster.nodes:
                assert node.node is not None
                partition = _partition_of(node, name)
                if partition is None or partition.log is None:
                    return f"{name} is not on node {node.id}"
                log = partition.log
                if log.high_watermark != log.log_end_offset:
                    return f"{name} is not committed on node {node.id}"
                self.advanced(log)
                contents.append((log.log_start_offset, log.log_end_offset))
            if len(set(contents)) > 1:
                return f"{name} has the ends {contents}"
        return ""


def batches_from(log: Log, offset: int) -> dict[int, bytes]:
    """The batches of a log from an offset on, by their base offsets."""
    found = {}
    while log.log_start_offset <= offset < log.log_end_offset:
        data = log.read(offset, _CHUNK, log.log_end_offset).read()
        position = 0
        while position < len(data):
            header = read_header(data, position)
            found[header.base_offset] = data[position : position + header.size]
            offset = header.next_offset
            position += header.size
        if not data:
            break
    return found


def _partition_of(node: "SimulatedNode", name: TopicPartition) -> Any:
    assert node.node is not None
    topic = node.node.partitions.by_wire_name.get(name.topic.encode())
    if topic is None or name.partition >= len(topic.partitions):
        return None
    return topic.partitions[name.partition]
