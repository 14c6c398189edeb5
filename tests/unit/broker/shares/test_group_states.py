"""States of share partitions from a group's wish to the share coordinator's log, and back."""

from pathlib import Path
from typing import Any, cast

import pytest

from headrace.broker.coordinators import Shard
from headrace.broker.shares.coordinator import ShareCoordinator
from headrace.broker.shares.group_states import begin_states, forget_group, forget_states
from headrace.broker.shares.persister import SharePersister
from headrace.broker.topics.internal_topics import SHARE_GROUP_STATE
from headrace.errors import (
    CoordinatorNotAvailable,
    FencedStateEpoch,
    InvalidRequest,
    KafkaError,
    NotCoordinator,
    UnknownTopicOrPartition,
)
from headrace.groups.shard import GroupShard
from headrace.groups.share.protocol import share_group_or_new
from headrace.groups.share.states import alter
from headrace.metadata.delta import ImageDelta
from headrace.metadata.image import MetadataImage
from headrace.runtime.eager import finish_now
from headrace.shares.state import SharePartitionKey, SharePartitionState, StateBatch, StateChange
from tests.unit.broker.api.builders import UnitBroker, a_broker, a_topic

GROUP = "workers"


class Bench:
    """A broker with a topic of many partitions, its group coordinator and share coordinator."""

    def __init__(self, directory: Path, partitions: int = 101) -> None:
        self.broker: UnitBroker = a_broker(
            directory,
            offsets_topic_num_partitions=1,
            share_coordinator_state_topic_num_partitions=2,
            share_coordinator_state_topic_replication_factor=1,
        )
        self.topic = a_topic("orders", partitions)
        image = self.broker.controller.image
        image.topics["orders"] = image.topics_by_id[self.topic.id] = self.topic  # type: ignore[index]
        broker = cast(Any, self.broker)
        self.coordinator = broker.share_coordinator = ShareCoordinator(
            broker.coordinator_resources, broker.controller, broker, broker.metrics.coordinators
        )
        self.persister = broker.share_persister = SharePersister(
            self.coordinator, broker.coordinator_resources
        )
        self._follow = self.broker.controller.on_published
        self.broker.controller.on_published = self._published

    def _published(self, delta: ImageDelta, image: MetadataImage) -> None:
        self._follow(delta, image)
        self.coordinator.coordinator.follow(image)

    async def group_shard(self) -> Shard[GroupShard]:
        await self.broker.groups.ensure_topic()
        return self.broker.groups.shard_for(GROUP)

    def key(self, partition: int = 0) -> SharePartitionKey:
        return SharePartitionKey(GROUP, self.topic.id, partition)


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def begin(bench: Bench, shard: Shard[GroupShard], count: int) -> dict[Any, KafkaError]:
    offsets = {bench.topic.id: dict.fromkeys(range(count), 5)}
    group = share_group_or_new(shard.state, GROUP)
    alteration = await shard.applied(alter(shard.state, group, offsets, 0))
    refused = await begin_states(
        bench.persister, shard, GROUP, alteration.state_epoch, alteration.offsets
    )
    return dict(refused)


async def test_states_of_many_partitions_are_begun(bench: Bench) -> None:
    """RMQ-1: more than one turn of the loop begins."""
    shard = await bench.group_shard()
    assert await begin(bench, shard, 101) == {}
    group = share_group_or_new(shard.state, GROUP)
    assert group.states.initialized[bench.topic.id].partitions == frozenset(range(101))
    assert (await bench.persister.read(bench.key(100), 1)).start_offset == 5


async def test_states_that_the_coordinator_refuses_are_not_recorded(bench: Bench) -> None:
    shard = await bench.group_shard()
    await bench.persister.initialize(bench.key(1), 50, 0)
    refused = await begin(bench, shard, 2)
    assert {place: type(error) for place, error in refused.items()} == {
        (bench.topic.id, 1): FencedStateEpoch
    }
    group = share_group_or_new(shard.state, GROUP)
    assert group.states.initialized[bench.topic.id].partitions == {0}
    assert group.states.initializing[bench.topic.id].partitions == {1}


async def test_forgotten_states_are_gone(bench: Bench) -> None:
    shard = await bench.group_shard()
    await begin(bench, shard, 2)
    gone = {bench.topic.id: frozenset((0, 1))}
    assert await forget_states(bench.persister, shard, GROUP, gone) == {}
    assert (await bench.persister.summary(bench.key())).start_offset == -1


async def test_a_group_that_is_deleted_takes_its_states_along(bench: Bench) -> None:
    shard = await bench.group_shard()
    await begin(bench, shard, 1)
    await forget_group(bench.persister, shard, GROUP, bench.broker.image)
    assert share_group_or_new(shard.state, GROUP).states.initialized == {}
    assert (await bench.persister.summary(bench.key())).start_offset == -1


async def test_the_first_request_creates_the_topic(bench: Bench) -> None:
    await bench.persister.initialize(bench.key(), 1, 7)
    assert len(bench.broker.image.topics[SHARE_GROUP_STATE].partitions) == 2


async def test_operations_do_not_wait_once_the_topic_exists(bench: Bench) -> None:
    """Else every acknowledgement would cost a task."""
    await bench.broker.coordinator_resources.create_topic(SHARE_GROUP_STATE)
    assert finish_now(bench.persister.initialize(bench.key(), 1, 7)) is None
    change = StateChange(1, 3, 8, 0, [StateBatch(9, 9, 2, 1)])
    assert finish_now(bench.persister.write(bench.key(), change)) is None
    state = await bench.persister.read(bench.key(), 3)
    assert (state.start_offset, state.batches) == (8, (StateBatch(9, 9, 2, 1),))
    assert bench.broker.metrics.coordinators.share_state_writes == 1


async def test_a_coordinator_that_is_not_ready_is_asked_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.broker.shares.persister._BACKOFF_S", 0)
    await bench.broker.coordinator_resources.create_topic(SHARE_GROUP_STATE)
    answers: list[KafkaError | SharePartitionState] = [
        NotCoordinator("moving"),
        CoordinatorNotAvailable("new"),
        SharePartitionState(start_offset=3),
    ]

    async def summary(key: SharePartitionKey) -> SharePartitionState:
        answer = answers.pop(0)
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    monkeypatch.setattr(bench.coordinator, "summary", summary)
    assert (await bench.persister.summary(bench.key())).start_offset == 3
    assert answers == []


async def test_other_refusals_are_raised_at_once(bench: Bench) -> None:
    await bench.broker.coordinator_resources.create_topic(SHARE_GROUP_STATE)
    with pytest.raises(InvalidRequest):
        await bench.persister.read(bench.key(), 1)
    with pytest.raises(UnknownTopicOrPartition):
        await bench.persister.initialize(bench.key(500), 1, 0)


async def test_records_that_later_ones_repeat_are_pruned(bench: Bench) -> None:
    await bench.persister.initialize(bench.key(), 1, 0)
    for epoch in range(2, 6):
        await bench.persister.initialize(bench.key(), epoch, 0)
    bench.coordinator.prune()
    shards = bench.coordinator.coordinator.shards.values()
    starts = [shard.partition.online_log().log_start_offset for shard in shards]
    assert sorted(starts) == [0, 4]


async def test_states_are_deleted_with_their_topic(bench: Bench) -> None:
    await bench.persister.initialize(bench.key(), 1, 0)
    bench.coordinator.on_topics_deleted({bench.topic.id})
    assert all(not shard.state.held for shard in bench.coordinator.coordinator.shards.values())
