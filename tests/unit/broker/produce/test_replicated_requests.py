"""Decoded requests with acks=all: several partitions, duplicates, syncs, and their errors."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.broker.api.records.produce import produce
from headrace.broker.direct_call import DirectCall
from headrace.broker.flushing import Flusher
from headrace.errors import NotEnoughReplicas, NotLeaderOrFollower, RequestTimedOut
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import decode, encode
from headrace.protocol.schemas.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.runtime.durations import Durations
from headrace.security.access import Access
from headrace.security.principals import ANONYMOUS
from headrace.storage.config import LogConfig
from tests.builders.logs import NOW, batch_of
from tests.builders.replicated_partitions import LEADER, SECOND, THIRD, ReplicatedNode

ALL = -1
VERSION = 12
_HEADER_SIZE = 9


class Producing:
    """The connection of a producer; decodes its answer."""

    listener = "PLAINTEXT"
    peer = "10.0.0.9:40000"
    host = "10.0.0.9"
    principal = ANONYMOUS
    closed = False

    def __init__(self) -> None:
        self.access: Access | None = None
        self.produce_shape: Any = None
        self.is_waiting = False
        self.response: ProduceResponse | None = None

    def wait(self, on_abandoned: Callable[[], None] | None = None) -> None:
        self.is_waiting = True

    def finish(self, parts: Any) -> None:
        self.is_waiting = False
        self.answer_parts(parts)

    def answer_parts(self, parts: Any) -> None:
        if not (data := b"".join(parts)):
            return
        self.response = decode(ProduceResponse, VERSION, memoryview(data)[_HEADER_SIZE:])

    def mute(self, duration_ms: int) -> None: ...

    def finish_muted(self, parts: Any, duration_ms: int) -> None: ...

    def close(self) -> None: ...

    fail = close

    @property
    def answers(self) -> list[PartitionProduceResponse]:
        assert self.response is not None, "the request still waits"
        return self.response.responses[0].partition_responses

    @property
    def codes(self) -> list[int]:
        return [one.error_code for one in self.answers]

    @property
    def offsets(self) -> list[int]:
        return [one.base_offset for one in self.answers]


class Leader(ReplicatedNode):
    def __init__(self, root: Path, partitions: int = 2, **state: Any) -> None:
        super().__init__(root, partitions, **state)
        self.syncs: list[asyncio.Future[None]] = []
        broker = cast(Any, self.broker)
        from headrace.broker.produce.shapes import ProduceShapes

        broker.produce_shapes = ProduceShapes()
        broker.flusher = Flusher(
            self.broker.loop,
            self._sync,
            lambda log, error: None,
            clock=self.broker.clock,
            durations=Durations(),
        )
        self.configure(min_insync_replicas=2)

    async def _sync(self, run: Callable[[], None]) -> None:
        waiting = self.broker.loop.create_future()
        self.syncs.append(waiting)
        await waiting
        run()

    def configure(self, **config: Any) -> None:
        for partition in self.partitions:
            partition.online_log().reconfigure(LogConfig(**config))

    def produce(
        self, *batches: tuple[int, memoryview], acks: int = ALL, timeout_ms: int = 60_000
    ) -> Producing:
        data = [PartitionProduceData(index=index, records=bytes(one)) for index, one in batches]
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[TopicProduceData(name="t", partition_data=data)],
        )
        connection = Producing()
        call = DirectCall(cast(Any, self.broker), connection, int(ApiKey.PRODUCE), VERSION, 7)
        produce(memoryview(bytearray(encode(request, VERSION))), 0, call)
        return connection

    def fetched(self, partition: int, *followers: int) -> None:
        led = self.partitions[partition]
        for follower in followers or (SECOND, THIRD):
            led.acknowledge(follower, led.online_log().log_end_offset, NOW)


@pytest.fixture
async def leader(tmp_path: Path) -> Leader:
    return Leader(tmp_path)


async def turn() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


async def test_a_request_waits_for_all_of_its_partitions(leader: Leader) -> None:
    answer = leader.produce((0, batch_of(b"a")), (1, batch_of(b"b")))
    leader.fetched(1)
    await turn()
    assert answer.is_waiting
    leader.fetched(0)
    await turn()
    assert (answer.codes, answer.offsets) == ([0, 0], [0, 0])


@pytest.mark.parametrize("acks", [1, 0])
async def test_other_acks_do_not_wait(leader: Leader, acks: int) -> None:
    if acks:
        assert leader.produce((0, batch_of(b"a")), acks=acks).codes == [0]
    else:
        assert not leader.produce((0, batch_of(b"a")), acks=acks).is_waiting


async def test_a_partition_that_takes_too_long_fails_alone(leader: Leader) -> None:
    answer = leader.produce((0, batch_of(b"a")), (1, batch_of(b"b")), timeout_ms=1)
    leader.fetched(0)
    await asyncio.sleep(0.01)
    assert answer.codes == [0, RequestTimedOut.code]
    assert leader.ends(1) == (0, 1)  # The record stays.


async def test_a_partition_below_the_min_isr_is_refused_alone(leader: Leader) -> None:
    leader.change(1, isr=(LEADER,), partition_epoch=1)
    answer = leader.produce((0, batch_of(b"a")), (1, batch_of(b"b")))
    leader.fetched(0)
    await turn()
    assert answer.codes == [0, NotEnoughReplicas.code]
    assert leader.ends(1) == (0, 0)


async def test_a_leader_alone_takes_records_for_others_acks(leader: Leader) -> None:
    leader.change(0, isr=(LEADER,), partition_epoch=1)
    assert leader.produce((0, batch_of(b"a")), acks=1).codes == [0]
    assert leader.ends(0) == (0, 1)  # Nothing is committed below the min ISR.


async def test_a_duplicate_is_answered_when_the_first_batch_is_committed(leader: Leader) -> None:
    batch = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    first = leader.produce((0, batch_of(b"a", **batch)))
    again = leader.produce((0, batch_of(b"a", **batch)))
    await turn()
    assert (first.is_waiting, again.is_waiting) == (True, True)
    leader.fetched(0)
    await turn()
    assert (first.offsets, again.offsets) == ([0], [0])
    assert leader.ends(0) == (1, 1)


async def test_the_sync_and_the_replicas_are_both_waited_for(leader: Leader) -> None:
    leader.configure(min_insync_replicas=2, flush_messages=1)
    answer = leader.produce((0, batch_of(b"a")))
    leader.fetched(0)
    await turn()
    assert answer.is_waiting
    leader.syncs[0].set_result(None)
    await turn()
    assert answer.codes == [0]
    answer = leader.produce((0, batch_of(b"b")))
    await turn()
    leader.syncs[1].set_result(None)
    await turn()
    assert answer.is_waiting
    leader.fetched(0)
    await turn()
    assert answer.codes == [0]


async def test_a_lost_leadership_names_the_new_leader_and_its_address(leader: Leader) -> None:
    answer = leader.produce((0, batch_of(b"a")), (1, batch_of(b"b")))
    leader.fetched(1)
    leader.change(0, leader=THIRD, leader_epoch=1)
    await turn()
    assert answer.codes == [NotLeaderOrFollower.code, 0]
    assert answer.answers[0].current_leader.leader_id == THIRD
    assert answer.response is not None
    assert [one.node_id for one in answer.response.node_endpoints] == [THIRD]


async def test_a_sole_replica_answers_at_once(leader: Leader) -> None:
    leader.change(0, replicas=(LEADER,), isr=(LEADER,), partition_epoch=1)
    assert leader.produce((0, batch_of(b"a"))).codes == [0]


async def test_a_partition_whose_log_is_made_by_the_request_waits(leader: Leader) -> None:
    partition = leader.partitions[0]
    log = partition.online_log()
    partition.log = partition.in_sync = None
    partition.make_log = lambda made: made.attach(log, NOW)
    answer = leader.produce((0, batch_of(b"a")))
    assert answer.is_waiting
    leader.fetched(0)
    await turn()
    assert answer.codes == [0]
