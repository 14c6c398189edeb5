"""The periodic decisions of the active controller, in virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from headrace.broker.registration import broker_registration
from headrace.controller.controller import Controller
from headrace.errors import NotController
from headrace.metadata.image import Endpoint
from headrace.protocol.schemas import alter_partition
from headrace.protocol.schemas.broker_heartbeat import BrokerHeartbeatRequest
from headrace.protocol.schemas.create_delegation_token import CreateDelegationTokenRequest
from headrace.protocol.schemas.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from headrace.quorum.metadata_quorum import MetadataQuorum
from headrace.quorum.upkeep import ControllerUpkeep
from headrace.security.principals import Caller, Principal
from headrace.settings.broker import BrokerSettings
from tests.builders.metadata_nodes import at_once, formatted, replica_in
from tests.builders.metadata_quorums import directory_id
from tests.builders.virtual_time import LoopClock, in_virtual_time

SESSION_MS = 9000
SETTINGS: dict[str, Any] = {
    "broker_session_timeout_ms": SESSION_MS,
    "metadata_max_idle_interval_ms": 0,
    "leader_imbalance_check_interval_seconds": 20,
}


class Cluster:
    """The active controller, and brokers that send heartbeats while they live."""

    def __init__(self, quorum: MetadataQuorum, **settings: Any) -> None:
        clock = LoopClock()
        self.quorum = quorum
        self.controller = Controller(
            quorum,
            clock,
            at_once,
            BrokerSettings(**{**SETTINGS, **settings}),
            has_other_brokers=True,
        )
        quorum.on_leadership = self.controller.led_by
        quorum.on_committed = self.controller.committed
        quorum.on_failure = self.controller.failed
        self.upkeep = ControllerUpkeep(self.controller, clock)
        self.epochs: dict[int, int] = {}
        self._beating: dict[int, asyncio.Task[None]] = {}

    async def join(self, broker_id: int) -> None:
        endpoint = Endpoint("PLAINTEXT", f"host{broker_id}", 9092)
        request = broker_registration(
            broker_id, "c" * 22, [endpoint], log_dirs=[directory_id(broker_id)]
        )
        self.epochs[broker_id] = (await self.controller.ask(request)).broker_epoch
        await self._beat(broker_id)
        self._beating[broker_id] = asyncio.ensure_future(self._live(broker_id))

    async def create(self, topic: str, *replicas: int) -> None:
        assignment = CreatableReplicaAssignment(0, list(replicas))
        request = CreateTopicsRequest([CreatableTopic(topic, -1, -1, [assignment])])
        (result,) = (await self.controller.ask(request)).topics
        assert result.error_code == 0, result

    async def rejoin(self, name: str, replica: int) -> None:
        """Have the leader of a partition put a replica back in sync."""
        topic = self.controller.image.topics[name]
        partition = topic.partitions[0]
        change = alter_partition.AlterPartitionRequestPartitionData(
            0,
            partition.leader_epoch,
            new_isr_with_epochs=[
                alter_partition.BrokerState(one, self.epochs[one])
                for one in (*partition.isr, replica)
            ],
            partition_epoch=partition.partition_epoch,
        )
        request = alter_partition.AlterPartitionRequest(
            partition.leader,
            self.epochs[partition.leader],
            [alter_partition.AlterPartitionRequestTopicData(topic.id, [change])],
        )
        answer = await self.controller.ask(request)
        assert answer.topics[0].partitions[0].error_code == 0

    def die(self, broker_id: int) -> None:
        self._beating.pop(broker_id).cancel()

    def is_active(self, broker_id: int) -> bool:
        return self.controller.image.is_active(broker_id)

    def leader_of(self, topic: str) -> int:
        leader: int = self.controller.image.topics[topic].partitions[0].leader
        return leader

    async def close(self) -> None:
        for task in self._beating.values():
            task.cancel()
        self.quorum.resign()
        await self.controller.close()
        await self.quorum.close()

    async def _live(self, broker_id: int) -> None:
        while True:
            await asyncio.sleep(2)
            with suppress(NotController):
                await self._beat(broker_id)

    async def _beat(self, broker_id: int) -> None:
        offset = self.controller.image.offset
        epoch = self.epochs[broker_id]
        beat = BrokerHeartbeatRequest(broker_id, epoch, current_metadata_offset=offset)
        await self.controller.ask(beat)


Life = Callable[[Cluster], Coroutine[Any, Any, None]]


def lived(directory: Path, life: Life, **settings: Any) -> None:
    async def run() -> None:
        cluster = Cluster(replica_in(formatted(directory), clock=LoopClock()), **settings)
        cluster.quorum.start()
        await cluster.controller.wait_until_active()
        upkeep = asyncio.ensure_future(cluster.upkeep.run())
        for broker_id in (1, 2, 3):
            await cluster.join(broker_id)
        await life(cluster)
        assert not upkeep.done()
        upkeep.cancel()
        await cluster.close()

    in_virtual_time(run())


def test_a_broker_that_falls_silent_is_fenced_when_its_session_ends(tmp_path: Path) -> None:
    async def life(cluster: Cluster) -> None:
        await cluster.create("orders", 2, 3)
        await asyncio.sleep(30)
        assert [cluster.is_active(one) for one in (1, 2, 3)] == [True] * 3
        cluster.die(2)
        await asyncio.sleep(SESSION_MS / 1000 - 2.5)
        assert cluster.is_active(2)
        await asyncio.sleep(3.5)
        assert [cluster.is_active(one) for one in (1, 2, 3)] == [True, False, True]
        assert cluster.leader_of("orders") == 3

    lived(tmp_path, life)


def test_a_broker_whose_process_is_gone_is_fenced_at_once(tmp_path: Path) -> None:
    async def life(cluster: Cluster) -> None:
        cluster.die(2)
        cluster.upkeep.broker_gone(2, cluster.epochs[2])
        await asyncio.sleep(0.1)
        assert [cluster.is_active(one) for one in (1, 2, 3)] == [True, False, True]

    lived(tmp_path, life)


def test_a_report_about_an_old_incarnation_is_ignored(tmp_path: Path) -> None:
    async def life(cluster: Cluster) -> None:
        cluster.upkeep.broker_gone(2, cluster.epochs[2] - 1)
        await asyncio.sleep(1)
        assert cluster.is_active(2)

    lived(tmp_path, life)


def test_a_broker_that_was_fenced_by_mistake_serves_again(tmp_path: Path) -> None:
    async def life(cluster: Cluster) -> None:
        cluster.upkeep.broker_gone(2, cluster.epochs[2])
        await asyncio.sleep(3)
        assert cluster.is_active(2)

    lived(tmp_path, life)


def test_leaders_return_to_their_preferred_replicas(tmp_path: Path) -> None:
    async def life(cluster: Cluster) -> None:
        await cluster.create("orders", 2, 3)
        cluster.upkeep.broker_gone(2, cluster.epochs[2])
        await asyncio.sleep(5)
        assert cluster.is_active(2)
        assert cluster.leader_of("orders") == 3
        await cluster.rejoin("orders", 2)
        await asyncio.sleep(25)
        assert cluster.leader_of("orders") == 2

    lived(tmp_path, life)


def test_expired_delegation_tokens_are_removed_at_intervals(tmp_path: Path) -> None:
    async def life(cluster: Cluster) -> None:
        ada = Caller(Principal("User", "ada"), "10.0.0.7")
        request = CreateDelegationTokenRequest(max_lifetime_ms=30_000)
        await cluster.controller.ask(request, 3, ada)
        await asyncio.sleep(55)
        assert len(cluster.controller.image.delegation_tokens) == 1
        await asyncio.sleep(10)
        assert len(cluster.controller.image.delegation_tokens) == 0

    lived(
        tmp_path,
        life,
        delegation_token_secret_key="key",
        delegation_token_expiry_check_interval_ms=60_000,
    )


def test_an_idle_log_gets_a_record_now_and_then(tmp_path: Path) -> None:
    """Followers that fetch see by it how far the log is committed."""

    async def life(cluster: Cluster) -> None:
        before = cluster.quorum.log.end_offset
        await asyncio.sleep(10)
        assert 15 <= cluster.quorum.log.end_offset - before <= 21

    lived(tmp_path, life, metadata_max_idle_interval_ms=500)


def test_a_controller_that_lost_its_leadership_decides_nothing(tmp_path: Path) -> None:
    async def life(cluster: Cluster) -> None:
        cluster.quorum.resign()
        end = cluster.quorum.log.end_offset
        await asyncio.sleep(SESSION_MS / 1000 * 3)
        assert cluster.quorum.log.end_offset == end

    lived(tmp_path, life, metadata_max_idle_interval_ms=500)
