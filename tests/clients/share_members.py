"""Members of share groups on a plain socket: every field of their requests in a test's hands."""

import datetime
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from kio.schema.errors import ErrorCode

from tests.clients.wire import Connection
from tests.processes.nodes import Node, eventually

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
SETTINGS = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.assignment.interval.ms": "0",
}
"""What lets a node of either flavour share out records soon."""

Batch = tuple[int, int, Sequence[int]]
"""First and last offset, and one acknowledge type or one for each."""


class Given(NamedTuple):
    """Records that a member was given, all for the same time."""

    first: int
    last: int
    delivery_count: int


class Fetched(NamedTuple):
    """The answer to a ShareFetch of one partition."""

    error_code: int
    given: list[Given]
    partition_error_code: int
    acknowledge_error_code: int
    records: bytes


class ShareMember:
    """One member that takes records from one partition, with a connection of its own."""

    def __init__(self, node: Node, group: str, topic: str, *, partition: int = 0) -> None:
        self.connection = Connection(node.port)
        self.group = group
        self.topic = topic
        self.partition = partition
        self.member_id = str(uuid.uuid4())
        self.member_epoch = 0
        self.epoch = 0
        self.topic_id = self._topic_id()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.connection.socket.close()

    def _topic_id(self) -> Any:
        answer = self.connection.call(
            "metadata",
            12,
            topics=[{"topic_id": None, "name": self.topic}],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        return answer.topics[0].topic_id

    def join(self) -> Self:
        """Heartbeat until the partition is assigned; its state is begun by then."""
        self.connection.call("find_coordinator", 4, key_type=0, coordinator_keys=[self.group])
        eventually(self._heartbeat, expect=lambda answer: answer == "assigned")
        return self

    def _heartbeat(self) -> str:
        answer = self.connection.call(
            "share_group_heartbeat",
            1,
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.member_epoch,
            subscribed_topic_names=[self.topic],
        )
        if answer.error_code != ErrorCode.none:
            return str(answer.error_code)
        self.member_epoch = answer.member_epoch
        if answer.assignment is None:
            return "unassigned"
        partitions = [one.partitions for one in answer.assignment.topic_partitions]
        return "assigned" if any(self.partition in one for one in partitions) else "unassigned"

    def fetch(
        self,
        *batches: Batch,
        version: int = 2,
        epoch: int | None = None,
        topic_id: Any = None,
        max_wait_ms: int = 100,
        **fields: Any,
    ) -> Fetched:
        """One ShareFetch, with acknowledgements; a session's epoch counts up automatically."""
        epoch = self.epoch if epoch is None else epoch
        partition = {
            "partition_index": self.partition,
            "acknowledgement_batches": [_batch(batch) for batch in batches],
        }
        request = {
            "group_id": self.group,
            "member_id": self.member_id,
            "share_session_epoch": epoch,
            "max_wait": datetime.timedelta(milliseconds=max_wait_ms),
            "min_bytes": 1,
            "max_bytes": 50_000_000,
            "max_records": 500,
            "batch_size": 500,
            "topics": [{"topic_id": topic_id or self.topic_id, "partitions": [partition]}],
            "forgotten_topics_data": [],
            **fields,
        }
        answer = self.connection.call("share_fetch", version, **request)
        if answer.error_code == ErrorCode.none:
            self.epoch = epoch + 1
        told = [one for topic in answer.responses for one in topic.partitions]
        if not told:
            return Fetched(int(answer.error_code), [], 0, 0, b"")
        (one,) = told
        given = [
            Given(it.first_offset, it.last_offset, it.delivery_count) for it in one.acquired_records
        ]
        return Fetched(
            int(answer.error_code),
            given,
            int(one.error_code),
            int(one.acknowledge_error_code),
            bytes(one.records or b""),
        )

    def take(self, *batches: Batch, **fields: Any) -> list[Given]:
        """Fetch until there are records; acknowledgements go with the first try only."""
        rest = list(batches)

        def fetched() -> list[Given]:
            answer = self.fetch(*rest, **fields)
            rest.clear()
            assert answer.error_code == 0, ErrorCode(answer.error_code)
            return answer.given

        return eventually(fetched)

    def acknowledge(
        self, *batches: Batch, version: int = 2, epoch: int | None = None, is_renewal: bool = False
    ) -> tuple[int, int]:
        """One ShareAcknowledge: the error of the request, and that of the partition."""
        epoch = self.epoch if epoch is None else epoch
        partition = {
            "partition_index": self.partition,
            "acknowledgement_batches": [_batch(batch) for batch in batches],
        }
        answer = self.connection.call(
            "share_acknowledge",
            version,
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=epoch,
            is_renew_ack=is_renewal,
            topics=[{"topic_id": self.topic_id, "partitions": [partition]}],
        )
        if answer.error_code == ErrorCode.none:
            self.epoch = epoch + 1
        told = [int(one.error_code) for topic in answer.responses for one in topic.partitions]
        return int(answer.error_code), told[0] if told else 0


def _batch(batch: Batch) -> dict[str, Any]:
    first, last, types = batch
    return {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}
