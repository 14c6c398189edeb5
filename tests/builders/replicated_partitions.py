"""A leader with followers for unit tests: a small broker, and fetches as followers send them."""

from pathlib import Path
from typing import Any, cast

import msgspec

from headrace.broker.api.records.fetch import fetch
from headrace.broker.direct_call import DirectCall
from headrace.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import decode
from headrace.protocol.schemas.alter_partition import AlterPartitionRequest
from headrace.protocol.schemas.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from headrace.protocol.uuids import Uuid
from headrace.replication.partition import Partition
from headrace.security.access import Access
from headrace.security.principals import ANONYMOUS
from headrace.storage.reading import LogSlice
from tests.builders.logs import NOW, batch_of
from tests.unit.broker.api.builders import (
    NODE_ID,
    FixedPeer,
    UnitBroker,
    a_broker,
    a_topic,
    image_with,
)

LEADER, SECOND, THIRD = NODE_ID, 2, 3
REPLICAS = (LEADER, SECOND, THIRD)
VERSION = 17
NOT_REPORTED = (1 << 63) - 1
_HEADER_SIZE = 9


def other_broker(broker_id: int, **fields: Any) -> BrokerImage:
    base = image_with().brokers[NODE_ID]
    changes: dict[str, Any] = {"id": broker_id, "epoch": 10 + broker_id, **fields}
    return msgspec.structs.replace(base, **changes)


def epoch_of(broker_id: int) -> int:
    return 10 + broker_id


def with_brokers(image: MetadataImage, **fields: Any) -> MetadataImage:
    """The image with the followers registered; keywords change them."""
    others = {one: other_broker(one, **fields) for one in (SECOND, THIRD)}
    return msgspec.structs.replace(image, brokers={**image.brokers, **others})


class ReplicatedNode:
    """A broker that leads the partitions of topic t, with two followers."""

    def __init__(self, root: Path, partitions: int = 1, **state: Any) -> None:
        self.broker: UnitBroker = a_broker(root)
        self.topic = a_topic("t", partitions, **{"replicas": REPLICAS, "isr": REPLICAS, **state})
        image = image_with(self.topic)
        self.broker.controller.image = with_brokers(image)
        self.broker._host(self.topic)

    @property
    def partitions(self) -> list[Partition]:
        return [one for one in self.broker.partitions if one.topic.id == self.topic.id]

    def append(self, *values: bytes, partition: int = 0) -> int:
        return self.partitions[partition].append(batch_of(*values), NOW).last_offset + 1

    def ends(self, partition: int = 0) -> tuple[int, int]:
        """High watermark and end of a log."""
        log = self.broker.log("t", partition)
        return log.high_watermark, log.log_end_offset

    def follow(self, *partitions: PartitionImage) -> None:
        """Take over a new image of the topic."""
        self.topic = TopicImage(self.topic.name, self.topic.id, partitions)
        image = self.broker.image
        self.broker.controller.image = msgspec.structs.replace(
            image,
            topics={**image.topics, "t": self.topic},
            topics_by_id={**image.topics_by_id, self.topic.id: self.topic},
        )
        self.broker._host(self.topic)

    def change(self, partition: int = 0, **fields: Any) -> None:
        """Take over an image in which one partition has changed."""
        images = list(self.topic.partitions)
        images[partition] = msgspec.structs.replace(images[partition], **fields)
        self.follow(*images)


class AnsweredFetch:
    """The connection of a follower: parks, and decodes its answer."""

    def __init__(self, version: int) -> None:
        self._version = version
        self.host, self.listener, self.principal = "10.0.0.9", FixedPeer().listener, ANONYMOUS
        self.access: Access | None = None
        self.peer = "10.0.0.9:9092"
        self.closed = False
        self.produce_shape: Any = None
        self.gathered = self.stashed_ns = self.requests = self.spent_ns = 0
        self.client_id: str | None = None
        self.repeated = None
        self.is_waiting = False
        self.answer: FetchResponse | None = None

    def wait(self, on_abandoned: Any = None) -> None:
        self.is_waiting = True

    def finish(self, parts: Any) -> None:
        self.is_waiting = False
        self.answer_parts(parts)

    def answer_parts(self, parts: Any) -> None:
        data = b"".join(one.read() if isinstance(one, LogSlice) else one for one in parts)
        self.answer = decode(FetchResponse, self._version, memoryview(data)[_HEADER_SIZE:])

    def mute(self, duration_ms: int) -> None: ...

    def finish_muted(self, parts: Any, duration_ms: int) -> None: ...

    def close(self) -> None:
        self.closed = True

    fail = close

    @property
    def topics(self) -> list[FetchableTopicResponse]:
        assert self.answer is not None, "the fetch still waits"
        return self.answer.responses

    @property
    def partitions(self) -> dict[int, PartitionData]:
        """The partitions in the answer."""
        return {one.partition_index: one for topic in self.topics for one in topic.partitions}


class FollowerClient:
    """Fetches as a follower does, with an incremental session."""

    def __init__(self, node: ReplicatedNode, broker_id: int, *, version: int = VERSION) -> None:
        self._node = node
        self.broker_id = broker_id
        self.broker_epoch = epoch_of(broker_id)
        self.version = version
        self.session_id = 0
        self.session_epoch = 0

    def fetch(
        self,
        *named: tuple[int, int] | FetchPartition,
        forgotten: tuple[int, ...] = (),
        wait_ms: int = 0,
        **fields: Any,
    ) -> AnsweredFetch:
        """Name partitions by index and offset; others of the session are not named."""
        topic_id = self._node.topic.id
        partitions = [
            one if isinstance(one, FetchPartition) else place_at(*one, **fields) for one in named
        ]
        state = ReplicaState(self.broker_id, self.broker_epoch)
        request = FetchRequest(
            replica_state=state if self.version >= 15 else ReplicaState(),
            replica_id=-1 if self.version >= 15 else self.broker_id,
            max_wait_ms=wait_ms,
            min_bytes=1,
            session_id=self.session_id,
            session_epoch=self.session_epoch,
            topics=[_topic(topic_id, partitions)] if partitions else [],
            forgotten_topics_data=[
                ForgottenTopic(topic="t", topic_id=topic_id, partitions=list(forgotten))
            ]
            if forgotten
            else [],
        )
        connection = AnsweredFetch(self.version)
        call = DirectCall(
            cast(Any, self._node.broker), connection, int(ApiKey.FETCH), self.version, 7
        )
        fetch(request, call)
        self.session_epoch += self.session_epoch >= 0
        if connection.answer is not None:
            self.session_id = connection.answer.session_id
        return connection

    def opened(self, *named: tuple[int, int], **fields: Any) -> "FollowerClient":
        """Open the session."""
        self.fetch(*named, **fields)
        assert self.session_id
        return self


def _topic(topic_id: Uuid, partitions: list[FetchPartition]) -> FetchTopic:
    return FetchTopic(topic="t", topic_id=topic_id, partitions=partitions)


def place_at(index: int, offset: int, *, epoch: int = 0, **fields: Any) -> FetchPartition:
    return FetchPartition(
        partition=index,
        fetch_offset=offset,
        current_leader_epoch=epoch,
        partition_max_bytes=1 << 20,
        **{"log_start_offset": 0, **fields},
    )


def proposals(requests: list[AlterPartitionRequest]) -> list[list[int]]:
    """The ISR of each partition that was asked for."""
    return [
        [member.broker_id for member in one.new_isr_with_epochs]
        for request in requests
        for topic in request.topics
        for one in topic.partitions
    ]
