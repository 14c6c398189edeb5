"""Small requests with acks=all over real connections: they wait for the followers in order."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import (
    KafkaError,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RequestTimedOut,
)
from headrace.protocol.hot_fetch import NodeAddress
from headrace.replication.partition import Partition
from headrace.storage.usual_append import Run
from tests.builders.failing_disk import failing
from tests.builders.produce_rounds import NODE, ProduceNode
from tests.unit.broker.test_dispatch import LARGE, Client, Served

SECOND, THIRD = 2, 3
ALL = -1


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    made = Served(ProduceNode(tmp_path, (SECOND, THIRD), min_insync_replicas=2))
    yield made
    made.close()


async def turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def is_silent(client: Client) -> bool:
    client.peer.setblocking(False)
    try:
        return client.peer.recv(1) == b""
    except BlockingIOError:
        return True
    finally:
        client.peer.settimeout(20)


async def test_gathered_requests_wait_for_one_offset(served: Served) -> None:
    clients = [served.client() for _ in range(3)]
    for client in clients:
        client.send(b"v", acks=ALL)
    await served.round()
    (partition, *_) = served.node.partitions
    assert partition.uncommitted is not None
    assert len(partition.uncommitted) == 1
    served.node.fetched(SECOND)
    await turn()
    assert all(is_silent(client) for client in clients)
    served.node.fetched(THIRD)
    await turn()
    assert [client.offsets(1) for client in clients] == [[1], [2], [3]]


async def test_a_connection_serves_one_request_at_a_time(served: Served) -> None:
    one, other = served.client(), served.client()
    one.send(b"a", b"b", b"c", acks=ALL)
    other.send(b"d", acks=ALL)
    await served.round()
    assert served.node.values() == []  # Nothing of it is committed.
    for last in (3, 4, 5):
        assert served.node.partitions[0].online_log().log_end_offset == last
        served.node.fetched(SECOND, THIRD)
        await turn()
    assert one.offsets(3) == [1, 3, 4]
    assert other.offsets(1) == [2]
    assert served.node.values() == [b"a", b"d", b"b", b"c"]


async def test_requests_that_waited_for_an_answer_are_gathered_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = [served.client() for _ in range(4)]
    for client in clients:
        client.send(b"one", b"two", acks=ALL)
    await served.round()
    runs: list[int] = []
    append_run = Partition.append_run

    def counted(partition: Partition, run: Run[Any]) -> bool:
        runs.append(len(run.batches))
        return append_run(partition, run)

    monkeypatch.setattr(Partition, "append_run", counted)
    served.node.fetched(SECOND, THIRD)
    await turn()
    assert runs == [4]


async def test_a_large_request_waits_as_well(served: Served) -> None:
    client = served.client()
    client.send(LARGE, acks=ALL)
    await served.round()
    assert is_silent(client)
    served.node.fetched(SECOND, THIRD)
    await turn()
    assert client.offsets(1) == [1]


async def test_requests_with_other_acks_do_not_wait(served: Served) -> None:
    leader_only, silent, waiting = (served.client() for _ in range(3))
    leader_only.send(b"a", acks=1)
    silent.send(b"b", acks=0)
    waiting.send(b"c", acks=ALL)
    await served.round()
    assert leader_only.offsets(1) == [1]
    assert is_silent(waiting)


async def test_mixed_acks_of_a_connection_are_answered_in_order(served: Served) -> None:
    client, other = served.client(), served.client()
    client.send(b"first", acks=1)
    client.send(b"second", acks=ALL)
    client.send(b"third", acks=1)
    other.send(b"other", acks=1)
    await served.round()
    assert client.offsets(1) == [1]
    assert is_silent(client)
    served.node.fetched(SECOND, THIRD)
    await turn()
    assert len(client.offsets(2)) == 2


async def error_of(client: Client) -> int:
    await turn()
    return client.answers(1)[0].error_code


async def test_too_few_in_sync_replicas_refuse_before_the_append(served: Served) -> None:
    client = served.client()
    served.node.change(isr=(NODE,), partition_epoch=1)
    client.send(b"v", acks=ALL)
    await served.round()
    assert await error_of(client) == NotEnoughReplicas.code
    assert served.node.partitions[0].online_log().log_end_offset == 1


async def test_too_few_in_sync_replicas_after_the_append_are_reported(served: Served) -> None:
    client = served.client()
    client.send(b"v", acks=ALL)
    await served.round()
    served.node.fetched(SECOND, THIRD)
    served.node.change(isr=(NODE,), partition_epoch=1)
    assert await error_of(client) == NotEnoughReplicasAfterAppend.code
    assert served.node.values() == [b"v"]


async def test_an_answer_that_takes_too_long_is_an_error(served: Served) -> None:
    client = served.client()
    client.send(b"v", acks=ALL)
    await served.round()
    uncommitted = served.node.partitions[0].uncommitted
    assert uncommitted is not None
    uncommitted._timer_s = served.loop.time() + 10_000
    uncommitted._expire(served.loop)
    assert await error_of(client) == RequestTimedOut.code
    assert served.node.partitions[0].online_log().log_end_offset == 2


async def test_a_lost_leadership_is_answered_with_the_new_leader(served: Served) -> None:
    asked: list[KafkaError] = []

    def nodes(listener: str, errors: Iterable[KafkaError]) -> list[NodeAddress]:
        asked.extend(errors)
        return []

    served.node.round.leader_nodes = nodes
    client = served.client()
    client.send(b"v", acks=ALL)
    await served.round()
    served.node.change(leader=SECOND, leader_epoch=1)
    assert await error_of(client) == NotLeaderOrFollower.code
    assert [error.current_leader for error in asked] == [(SECOND, 1)]


async def test_a_disk_that_refuses_a_round_is_reported(served: Served) -> None:
    clients = [served.client() for _ in range(2)]
    for client in clients:
        client.send(b"v", acks=ALL)
    with failing("pwrite"):
        await served.round()
    assert [await error_of(client) for client in clients] == [56, 56]


async def test_a_client_that_leaves_while_it_waits_affects_no_other(served: Served) -> None:
    gone, client = served.client(), served.client()
    gone.send(b"a", acks=ALL)
    client.send(b"b", acks=ALL)
    await served.round()
    gone.connection.close()
    served.node.fetched(SECOND, THIRD)
    await turn()
    assert client.offsets(1) == [2]


async def test_a_partition_that_is_the_only_one_in_sync_answers_at_once(tmp_path: Path) -> None:
    served = Served(ProduceNode(tmp_path, (SECOND,)))
    served.node.change(isr=(NODE,), partition_epoch=1)
    client = served.client()
    client.send(*[b"v"] * 50, acks=ALL)
    await served.round()
    for _ in range(60):
        await turn()
    assert client.offsets(50) == [*range(1, 51)]
    served.close()


async def test_a_round_counts_each_request_once(served: Served) -> None:
    clients = [served.client() for _ in range(3)]
    for client in clients:
        client.send(b"v", acks=ALL)
    await served.round()
    served.node.fetched(SECOND, THIRD)
    await turn()
    assert served.node.metrics.requests.api(0).versions == {9: 3}
    assert served.node.metrics.topic("orders").messages_in == 3
