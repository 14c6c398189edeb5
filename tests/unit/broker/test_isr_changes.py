"""Followers join and leave the in-sync replicas by the answers of a controller that tests play."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.broker.isr_changes import IsrChanges
from headrace.errors import (
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidUpdateVersion,
    KafkaError,
    NotController,
    OperationNotAttempted,
    StaleBrokerEpoch,
)
from headrace.metadata.delta import ImageDelta
from headrace.metadata.image import MetadataImage
from headrace.protocol.message import Message
from headrace.protocol.schemas.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from headrace.replication.in_sync_replicas import InSyncReplicas
from tests.builders.replicated_partitions import (
    LEADER,
    SECOND,
    THIRD,
    FollowerClient,
    ReplicatedNode,
    epoch_of,
    other_broker,
    proposals,
)
from tests.unit.broker.api.builders import BROKER_EPOCH

Answer = Callable[[AlterPartitionRequest], AlterPartitionResponse]


def accepted(request: AlterPartitionRequest) -> AlterPartitionResponse:
    """Make all changes."""
    return answered(request, lambda index: 0)


def answered(
    request: AlterPartitionRequest, code_of: Callable[[int], int]
) -> AlterPartitionResponse:
    topics = [
        AlterPartitionResponseTopicData(
            topic.topic_id,
            [
                AlterPartitionResponsePartitionData(
                    partition_index=one.partition_index,
                    error_code=code_of(one.partition_index),
                    leader_id=LEADER,
                    leader_epoch=one.leader_epoch,
                    isr=[member.broker_id for member in one.new_isr_with_epochs],
                    partition_epoch=one.partition_epoch + 1,
                )
                for one in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return AlterPartitionResponse(topics=topics)


def refused(error: type[KafkaError]) -> Answer:
    return lambda request: answered(request, lambda index: error.code)


class Played:
    """A controller: records the requests, and answers when the test wants it."""

    def __init__(self) -> None:
        self.requests: list[AlterPartitionRequest] = []
        self._answers: asyncio.Queue[Answer | KafkaError] = asyncio.Queue()

    async def ask(self, request: Message) -> AlterPartitionResponse:
        assert isinstance(request, AlterPartitionRequest)
        self.requests.append(request)
        answer = await self._answers.get()
        if isinstance(answer, KafkaError):
            raise answer
        return answer(request)

    async def answer(self, answer: Answer | KafkaError = accepted) -> None:
        self._answers.put_nowait(answer)
        await settle()

    @property
    def isrs(self) -> list[list[int]]:
        return proposals(self.requests)


async def settle() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


class Leading(ReplicatedNode):
    """A leader whose changes go to a played controller."""

    def __init__(self, root: Path, partitions: int = 1, **state: Any) -> None:
        super().__init__(root, partitions, **state)
        self.controller = Played()
        self.pauses: list[float] = []
        broker = self.broker
        self.changes = IsrChanges(
            LEADER,
            broker.partitions,
            self.controller.ask,
            broker.clock,
            broker.tasks,
            broker.metrics.isr,
            image=lambda: broker.image,
            broker_epoch=lambda: BROKER_EPOCH,
            settings=lambda: broker.settings,
            sleep=self._sleep,
        )
        broker.__dict__["isr_changes"] = self.changes

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)

    def in_sync(self, partition: int = 0) -> InSyncReplicas:
        found = self.partitions[partition].in_sync
        assert found is not None
        return found

    def register(self, broker_id: int, **fields: Any) -> None:
        """Publish a change of a broker."""
        image: MetadataImage = self.broker.image
        changed = other_broker(broker_id, **fields)
        delta = ImageDelta(image)
        delta.brokers.put(broker_id, changed)
        image = msgspec.structs.replace(image, brokers={**image.brokers, broker_id: changed})
        self.broker.controller.image = image
        self.changes.follow(delta, image)

    def lag(self) -> None:
        """Let the time pass in which followers may lag, and look."""
        self.broker.clock.time_ms += self.broker.settings.replica_lag_time_max_ms + 1
        self.changes.check()


def alone(root: Path, partitions: int = 1) -> Leading:
    """A leader whose followers are not in sync."""
    return Leading(root, partitions, isr=(LEADER,))


async def test_a_follower_that_has_caught_up_joins(tmp_path: Path) -> None:
    node = alone(tmp_path)
    node.append(b"a")
    FollowerClient(node, SECOND).fetch((0, 1))
    await settle()
    (request,) = node.controller.requests
    (asked,) = request.topics[0].partitions
    assert (request.broker_id, request.broker_epoch) == (LEADER, BROKER_EPOCH)
    assert (asked.leader_epoch, asked.partition_epoch, asked.leader_recovery_state) == (0, 0, 0)
    assert [(one.broker_id, one.broker_epoch) for one in asked.new_isr_with_epochs] == [
        (LEADER, BROKER_EPOCH),
        (SECOND, epoch_of(SECOND)),
    ]
    assert node.in_sync().maximal == {LEADER, SECOND}
    await node.controller.answer()
    assert node.in_sync().committed == {LEADER, SECOND}
    assert node.broker.metrics.isr.expansions == 1


async def test_a_follower_behind_the_high_watermark_does_not_join(tmp_path: Path) -> None:
    node = alone(tmp_path)
    node.append(b"a", b"b")
    FollowerClient(node, SECOND).fetch((0, 1))
    await settle()
    assert node.controller.requests == []


async def test_followers_join_one_after_the_other_without_further_fetches(tmp_path: Path) -> None:
    node = alone(tmp_path)
    node.append(b"a")
    for one in (SECOND, THIRD):
        FollowerClient(node, one).fetch((0, 1))
    await settle()
    await node.controller.answer()
    await node.controller.answer()
    assert node.controller.isrs == [[LEADER, SECOND], [LEADER, SECOND, THIRD]]
    assert node.in_sync().committed == {LEADER, SECOND, THIRD}


async def test_all_changes_that_wait_leave_in_one_request(tmp_path: Path) -> None:
    node = alone(tmp_path, 3)
    second = FollowerClient(node, SECOND).opened((0, 0))
    await settle()
    second.fetch((1, 0), (2, 0))
    await settle()
    assert len(node.controller.requests) == 1
    await node.controller.answer()
    assert [len(one.topics[0].partitions) for one in node.controller.requests] == [1, 2]


@pytest.mark.parametrize("state", [{"fenced": True}, {"in_controlled_shutdown": True}])
async def test_a_broker_that_is_not_active_joins_when_it_is(
    tmp_path: Path, state: dict[str, bool]
) -> None:
    node = alone(tmp_path)
    node.register(SECOND, **state)
    FollowerClient(node, SECOND).fetch((0, 0))
    await settle()
    assert node.controller.requests == []
    node.register(SECOND)
    await settle()
    assert node.controller.isrs == [[LEADER, SECOND]]


async def test_the_life_of_a_broker_must_be_the_registered_one(tmp_path: Path) -> None:
    node = alone(tmp_path)
    follower = FollowerClient(node, SECOND)
    follower.broker_epoch += 1  # Ahead of our metadata.
    follower.fetch((0, 0))
    await settle()
    assert node.controller.requests == []
    node.register(SECOND, epoch=follower.broker_epoch)
    await settle()
    assert node.controller.isrs == [[LEADER, SECOND]]


async def test_an_older_follower_joins_without_an_epoch(tmp_path: Path) -> None:
    node = alone(tmp_path)
    FollowerClient(node, SECOND, version=14).fetch((0, 0))
    await settle()
    (member,) = (
        one
        for one in node.controller.requests[0].topics[0].partitions[0].new_isr_with_epochs
        if one.broker_id == SECOND
    )
    assert member.broker_epoch == -1


async def test_a_fenced_follower_holds_the_high_watermark_back_no_longer(tmp_path: Path) -> None:
    node = Leading(tmp_path, isr=(LEADER, SECOND))
    node.append(b"a")
    third = FollowerClient(node, THIRD).opened((0, 1))
    await settle()
    await node.controller.answer(refused(OperationNotAttempted))
    third.fetch()
    node.append(b"b")
    FollowerClient(node, SECOND).fetch((0, 2))
    assert node.ends() == (1, 2)  # The third is caught up and about to join.
    node.register(THIRD, fenced=True)
    assert node.ends() == (2, 2)


async def test_followers_that_lag_leave(tmp_path: Path) -> None:
    node = Leading(tmp_path)
    node.append(b"a")
    node.lag()
    await settle()
    assert node.controller.isrs == [[LEADER]]
    assert node.ends() == (0, 1)
    await node.controller.answer()
    assert node.in_sync().committed == {LEADER}
    assert node.ends() == (1, 1)
    assert node.broker.metrics.isr.shrinks == 1


async def test_followers_of_an_idle_partition_do_not_lag(tmp_path: Path) -> None:
    node = Leading(tmp_path)
    for one in (SECOND, THIRD):
        FollowerClient(node, one).opened((0, 0))
    node.lag()
    await settle()
    assert node.controller.requests == []


@pytest.mark.parametrize("error", [OperationNotAttempted, IneligibleReplica])
async def test_a_change_that_was_not_made_is_withdrawn(
    tmp_path: Path, error: type[KafkaError]
) -> None:
    node = alone(tmp_path)
    for one in (SECOND, THIRD):
        FollowerClient(node, one).fetch((0, 0))
    await settle()
    await node.controller.answer(refused(error))
    assert node.controller.isrs == [[LEADER, SECOND], [LEADER, THIRD]]
    assert node.broker.metrics.isr.failures == 1


async def test_a_refused_follower_is_proposed_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.broker.isr_changes._REFUSED_S", 0.001)
    node = alone(tmp_path)
    FollowerClient(node, SECOND).fetch((0, 0))
    await settle()
    await node.controller.answer(refused(IneligibleReplica))
    await asyncio.sleep(0.01)
    assert node.controller.isrs == [[LEADER, SECOND]] * 2


@pytest.mark.parametrize("error", [FencedLeaderEpoch, InvalidUpdateVersion])
async def test_an_unclear_change_counts_until_the_metadata_brings_the_outcome(
    tmp_path: Path, error: type[KafkaError]
) -> None:
    node = alone(tmp_path)
    FollowerClient(node, SECOND).fetch((0, 0))
    await settle()
    await node.controller.answer(refused(error))
    assert node.in_sync().maximal == {LEADER, SECOND}
    assert len(node.controller.requests) == 1
    node.change(isr=(LEADER, THIRD), partition_epoch=1)
    assert node.in_sync().maximal == {LEADER, THIRD}


@pytest.mark.parametrize(
    "failure",
    [
        CoordinatorNotAvailable("the controller moves"),
        refused(NotController),
        lambda request: AlterPartitionResponse(error_code=StaleBrokerEpoch.code),
        lambda request: AlterPartitionResponse(),
    ],
)
async def test_other_failures_are_retried_with_growing_pauses(
    tmp_path: Path, failure: Answer | KafkaError
) -> None:
    node = alone(tmp_path)
    FollowerClient(node, SECOND).fetch((0, 0))
    await settle()
    await node.controller.answer(failure)
    await node.controller.answer(failure)
    await node.controller.answer()
    assert node.controller.isrs == [[LEADER, SECOND]] * 3
    assert node.pauses == [0.05, 0.1]
    assert node.in_sync().committed == {LEADER, SECOND}


async def test_a_partition_that_is_decided_is_not_asked_for_again(tmp_path: Path) -> None:
    node = alone(tmp_path, 2)
    FollowerClient(node, SECOND).fetch((0, 0), (1, 0))
    await settle()
    await node.controller.answer(
        lambda request: answered(request, lambda index: NotController.code if index else 0)
    )
    assert [one.topics[0].partitions[-1].partition_index for one in node.controller.requests] == [
        1,
        1,
    ]
    assert len(node.controller.requests[1].topics[0].partitions) == 1


async def test_the_metadata_may_bring_the_change_before_the_answer(tmp_path: Path) -> None:
    node = alone(tmp_path)
    FollowerClient(node, SECOND).fetch((0, 0))
    await settle()
    node.change(isr=(LEADER, SECOND), partition_epoch=1)
    assert node.in_sync().proposed is None
    FollowerClient(node, THIRD).fetch((0, 0))
    await node.controller.answer()
    assert node.in_sync().maximal == {LEADER, SECOND, THIRD}
    await node.controller.answer()
    assert node.in_sync().committed == {LEADER, SECOND, THIRD}
    assert node.broker.metrics.isr.expansions == 2


async def test_a_follower_is_proposed_again_when_other_metadata_came_first(
    tmp_path: Path,
) -> None:
    node = alone(tmp_path)
    FollowerClient(node, SECOND).fetch((0, 0))
    await settle()
    node.change(isr=(LEADER, THIRD), partition_epoch=1)
    await node.controller.answer(refused(InvalidUpdateVersion))
    assert node.controller.isrs == [[LEADER, SECOND], [LEADER, SECOND, THIRD]]


async def test_an_answer_to_an_earlier_leadership_changes_nothing(tmp_path: Path) -> None:
    node = alone(tmp_path)
    FollowerClient(node, SECOND).fetch((0, 0))
    await settle()
    node.change(leader_epoch=1, partition_epoch=1)
    await node.controller.answer()
    assert node.in_sync().committed == {LEADER}
    assert node.broker.metrics.isr.failures == 1


async def test_a_change_of_a_lost_leadership_is_not_sent(tmp_path: Path) -> None:
    node = alone(tmp_path, 2)
    second = FollowerClient(node, SECOND).opened((0, 0))
    await settle()
    second.fetch((1, 0))
    node.change(1, leader=THIRD, leader_epoch=1)
    await node.controller.answer()
    assert len(node.controller.requests) == 1


async def test_an_unclean_leader_counts_as_recovered(tmp_path: Path) -> None:
    node = Leading(tmp_path, isr=(LEADER,), leader_recovery_state=1)
    FollowerClient(node, SECOND).fetch((0, 0))
    await settle()
    assert node.controller.requests[0].topics[0].partitions[0].leader_recovery_state == 0
