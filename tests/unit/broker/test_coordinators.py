"""The shell of coordinators: it loads, leads, gives up, and answers after the write."""

import asyncio
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from headrace.coordination.effects import Effects, Producer, TimerKey
from headrace.errors import CoordinatorLoadInProgress, NotCoordinator
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.offset_records import CommittedOffset, OffsetKey, offset_record
from headrace.groups.offsets import Commit, commit
from headrace.metadata.image import MetadataImage
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.heartbeat import HeartbeatRequest
from headrace.protocol.schemas.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.protocol.schemas.list_groups import ListGroupsRequest
from headrace.protocol.uuids import ZERO
from tests.unit.broker.api.builders import UnitBroker, a_broker, ask

TOPIC = "__consumer_offsets"


@pytest.fixture
async def broker(tmp_path: Path) -> UnitBroker:
    broker = a_broker(tmp_path, offsets_topic_num_partitions=1)
    await broker.groups.ensure_topic()
    return broker


def commits(count: int, group: str = "g") -> Effects[str]:
    return Effects(
        reply="done",
        records=[offset_record(OffsetKey(group, "t", n), CommittedOffset(n)) for n in range(count)],
    )


def led_by(image: MetadataImage, leader: int) -> MetadataImage:
    topic = image.topics[TOPIC]
    partitions = tuple(msgspec.structs.replace(p, leader=leader) for p in topic.partitions)
    moved = msgspec.structs.replace(topic, partitions=partitions)
    return msgspec.structs.replace(image, topics={TOPIC: moved}, topics_by_id={topic.id: moved})


def test_no_broker_coordinates_before_the_topic_exists(tmp_path: Path) -> None:
    with pytest.raises(NotCoordinator):
        a_broker(tmp_path).groups.shard_for("g")


async def test_a_decision_is_written_as_one_batch_and_replayed(broker: UnitBroker) -> None:
    shard = broker.groups.shard_for("g")
    assert shard.apply(commits(3)) == "done"
    log = broker.log(TOPIC, 0)
    assert (log.log_end_offset, log.high_watermark) == (3, 3)
    assert shard.state.offsets.of("g")["t"].keys() == {0, 1, 2}
    assert isinstance(shard.state.groups["g"], ClassicGroup)


async def test_a_shard_is_loaded_from_its_log(broker: UnitBroker) -> None:
    """CON-12: slice by slice, and requests are rejected until the end."""
    shard = broker.groups.shard_for("g")
    for number in range(300):
        shard.apply(commits(20, f"g{number}"))
    image = broker.image
    broker.groups.follow(led_by(image, 2))
    broker.groups.follow(image)
    with pytest.raises(CoordinatorLoadInProgress):
        broker.groups.shard_for("g")
    response = await ask(broker, ApiKey.LIST_GROUPS, ListGroupsRequest())
    assert response.error_code == CoordinatorLoadInProgress.code
    while broker.groups.is_loading:
        await asyncio.sleep(0)
    loaded = broker.groups.shard_for("g")
    assert loaded is not shard
    assert loaded.state.offsets.by_group == shard.state.offsets.by_group


@pytest.mark.parametrize("retention_ms", [-1, 5000])
@pytest.mark.parametrize("producer", [None, Producer(7, 0)])
async def test_committed_offsets_are_equal_after_a_load(
    broker: UnitBroker, retention_ms: int, producer: Producer | None
) -> None:
    """CON-12: the live step applies values, the load reads records; both know the same."""
    shard = broker.groups.shard_for("g")
    topic_id = bytes(range(16))
    given: list[Commit] = [
        ("t", topic_id, 0, 5, 2, None),
        ("t", topic_id, 1, 6, -1, "a word"),
        ("u", ZERO, 0, 7, 3, ""),
        ("t", topic_id, 0, 8, 2, None),
    ]
    effects = commit(shard.state, "g", given, 1000, retention_ms=retention_ms, producer=producer)
    assert shard.apply(effects) == [0, 0, 0, 0]
    image = broker.image
    broker.groups.follow(led_by(image, 2))
    broker.groups.follow(image)
    while broker.groups.is_loading:
        await asyncio.sleep(0)
    loaded = broker.groups.shard_for("g").state
    assert loaded is not shard.state
    assert loaded.offsets.by_group == shard.state.offsets.by_group
    assert loaded.offsets.pending == shard.state.offsets.pending
    assert loaded.groups.keys() == shard.state.groups.keys() == {"g"}
    assert broker.metrics.coordinators.offset_commits == len(given)


async def test_waiting_members_are_redirected_when_the_leader_changes(broker: UnitBroker) -> None:
    request = JoinGroupRequest(
        "g", 10_000, 10_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"")]
    )
    waiting = asyncio.ensure_future(ask(broker, ApiKey.JOIN_GROUP, request, 3))
    await asyncio.sleep(0)
    broker.groups.follow(led_by(broker.image, 2))
    assert (await waiting).error_code == NotCoordinator.code
    beat = HeartbeatRequest("g", 1, "m")
    assert (await ask(broker, ApiKey.HEARTBEAT, beat)).error_code == NotCoordinator.code


async def test_a_deleted_topic_takes_its_shards_along(broker: UnitBroker) -> None:
    broker.groups.follow(msgspec.structs.replace(broker.image, topics={}, topics_by_id={}))
    assert not broker.groups.exists
    with pytest.raises(NotCoordinator):
        broker.groups.shard_for("g")


async def test_a_failed_write_is_not_acknowledged(broker: UnitBroker) -> None:
    """DEL-2: an offline disk makes this broker no coordinator."""
    shard = broker.groups.shard_for("g")
    undone = []
    effects = commits(1)
    effects.on_refused = lambda error: (undone.append(error), Effects())[1]  # type: ignore[func-returns-value]
    broker.log(TOPIC, 0).failure = "the disk is gone"
    with pytest.raises(NotCoordinator):
        shard.apply(effects)
    assert len(undone) == 1
    assert not shard.state.offsets.by_group


async def test_a_reply_waits_for_the_high_watermark(
    broker: UnitBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DEL-2: written is not committed, once there are more replicas."""
    shard = broker.groups.shard_for("g")
    log_class = type(broker.log(TOPIC, 0))
    advance = log_class.advance_high_watermark
    monkeypatch.setattr(log_class, "advance_high_watermark", lambda self, offset: None)
    reply = shard.apply(commits(2))
    assert asyncio.iscoroutine(reply)
    waiting = asyncio.ensure_future(reply)
    await asyncio.sleep(0)
    assert not waiting.done()
    advance(broker.log(TOPIC, 0), 2)
    shard.on_committed()
    assert await waiting == "done"


async def test_requests_waiting_for_replicas_are_redirected_when_the_leader_changes(
    broker: UnitBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DEL-2: the new leader may lack the record, so the commit is not confirmed."""
    shard = broker.groups.shard_for("g")
    log_class = type(broker.log(TOPIC, 0))
    monkeypatch.setattr(log_class, "advance_high_watermark", lambda self, offset: None)
    ticket: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    effects = commits(2)
    effects.answers = [(ticket, "a word to somebody else")]
    reply = shard.apply(effects)
    assert asyncio.iscoroutine(reply)
    assert not ticket.done()
    broker.groups.follow(led_by(broker.image, 2))
    with pytest.raises(NotCoordinator):
        await reply


async def test_replies_leave_in_order_as_the_high_watermark_moves(
    broker: UnitBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DEL-2: each when its own records are committed, not before."""
    shard = broker.groups.shard_for("g")
    log_class = type(broker.log(TOPIC, 0))
    advance = log_class.advance_high_watermark
    monkeypatch.setattr(log_class, "advance_high_watermark", lambda self, offset: None)
    replies = [shard.apply(commits(count)) for count in (2, 3)]
    waiting = [asyncio.ensure_future(reply) for reply in replies if asyncio.iscoroutine(reply)]
    seen = []
    for high_watermark in (1, 2, 4, 5):
        advance(broker.log(TOPIC, 0), high_watermark)
        shard.on_committed()
        await asyncio.sleep(0)
        seen.append([task.done() for task in waiting])
    assert seen == [[False, False], [True, False], [True, False], [True, True]]


async def test_a_timer_is_not_forgotten_when_one_that_rings_sets_another(
    broker: UnitBroker,
) -> None:
    """CON-4: groups that join one after the other all get their rebalance."""
    due: list[str] = []
    now_ms = broker.clock.monotonic_ms()

    class Ringing:
        def on_timer(self, key: TimerKey) -> None:
            due.append(key[0])
            if key[0] == "first":
                broker.timers.set((cast(Any, self), ("a session",)), now_ms + 45_000)

    shard = cast(Any, Ringing())
    broker.timers.set((shard, ("first",)), now_ms)
    broker.timers.set((shard, ("second",)), now_ms + 10)
    while due != ["first"]:
        await asyncio.sleep(0.001)
    broker.clock.time_ms += 10
    async with asyncio.timeout(10):
        while due != ["first", "second"]:
            await asyncio.sleep(0.001)


async def test_effects_of_a_timer_are_retried_when_the_log_rejects_them(
    broker: UnitBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CON-5: a member that died while the disk was full must not stay for ever."""
    shard = broker.groups.shard_for("g")
    monkeypatch.setattr(shard.state, "on_timer", lambda key, now_ms: commits(1))
    log = broker.log(TOPIC, 0)
    log.failure = "the disk is gone"
    shard.on_timer(("classic.session", "g", "m"))
    assert not shard.state.offsets.by_group
    log.failure = None
    broker.clock.time_ms += 60_000
    async with asyncio.timeout(10):
        while not shard.state.offsets.by_group:
            await asyncio.sleep(0.001)


async def test_no_shard_is_loaded_after_the_stop(broker: UnitBroker) -> None:
    """The last news of the metadata comes when the logs are about to be closed."""
    image = broker.image
    broker.groups.stop()
    broker.groups.follow(image)
    assert not broker.groups.shards
    assert not broker.groups.is_loading
