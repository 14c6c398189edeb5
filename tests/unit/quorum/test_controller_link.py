"""The way to the active controller: on this node, behind a connection, or not there yet."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.broker.registration import broker_registration
from headrace.errors import (
    InvalidTopicException,
    NotController,
    RequestTimedOut,
    StaleBrokerEpoch,
    UnknownServerError,
)
from headrace.metadata.image import Endpoint
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.api_messages import response_type_of
from headrace.protocol.message import Message
from headrace.protocol.metadata_topic import METADATA_TOPIC
from headrace.protocol.schemas import describe_quorum
from headrace.protocol.schemas.allocate_producer_ids import AllocateProducerIdsRequest
from headrace.protocol.schemas.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from headrace.protocol.schemas.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.quorum.controller_link import ControllerLink
from headrace.quorum.listener import ControllerListener, api_versions
from headrace.quorum.quorum_node import QuorumNode
from headrace.raft.messages import Leadership
from headrace.raft.replicas import Node
from headrace.security.principals import Caller
from tests.builders.metadata_nodes import formatted, started
from tests.builders.metadata_quorums import CLUSTER_ID, directory_id
from tests.builders.quorum_nodes import HOST, bound, node_in, port_of, until

ORDERS = CreateTopicsRequest([CreatableTopic("orders", 1, 1)])
DESCRIBE = describe_quorum.DescribeQuorumRequest(
    [
        describe_quorum.DescribeQuorumRequestTopicData(
            METADATA_TOPIC, [describe_quorum.DescribeQuorumRequestPartitionData(0)]
        )
    ]
)


class TestOnThisNode:
    async def test_the_controller_decides(self, tmp_path: Path) -> None:
        controller = await started(formatted(tmp_path))
        link = ControllerLink(controller.replica, controller)
        answer: CreateTopicsResponse = await link.ask(ORDERS)
        assert [one.error_code for one in answer.topics] == [0]
        assert list(controller.image.topics) == ["orders"]
        await controller.stop(1)

    async def test_the_quorum_is_described(self, tmp_path: Path) -> None:
        controller = await started(formatted(tmp_path))
        link = ControllerLink(controller.replica, controller)
        answer = await link.ask(DESCRIBE)
        assert answer.topics[0].partitions[0].leader_id == 1
        await controller.stop(1)

    async def test_errors_of_whole_requests_are_raised(self, tmp_path: Path) -> None:
        controller = await started(formatted(tmp_path))
        link = ControllerLink(controller.replica, controller)
        with pytest.raises(StaleBrokerEpoch):
            await link.ask(BrokerHeartbeatRequest(1, controller.broker_epoch - 1))
        await controller.stop(1)


class Pair:
    """A controller with a port, and a broker that observes it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._socket = bound()
        self.ports = {1: port_of(self._socket)}
        self.broker = node_in(directory / "4", self.ports, 4)
        self.controller: QuorumNode

    async def start_controller(self) -> None:
        self.controller = node_in(self._directory / "1", self.ports)
        await self.controller.start([self._socket])

    async def register(self) -> int:
        request = broker_registration(
            4, CLUSTER_ID, [Endpoint("PLAINTEXT", HOST, 9092)], log_dirs=[directory_id(4)]
        )
        epoch: int = (await self.broker.link.ask(request)).broker_epoch
        beat = BrokerHeartbeatRequest(4, epoch, current_metadata_offset=1 << 40)
        assert not (await self.broker.link.ask(beat)).is_fenced
        return epoch

    async def close(self) -> None:
        await self.broker.close()
        await self.controller.close()


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    pair = Pair(tmp_path)
    await pair.start_controller()
    await pair.broker.start()
    yield pair
    await pair.close()


class TestBehindAConnection:
    async def test_nodes_ask_for_themselves(self, pair: Pair) -> None:
        epoch = await pair.register()
        answer = await pair.broker.link.ask(AllocateProducerIdsRequest(4, epoch))
        assert answer.producer_id_len > 0
        await until(lambda: pair.broker.controller.image.next_producer_id > 0)

    async def test_requests_of_clients_are_forwarded(self, pair: Pair) -> None:
        await pair.register()
        for version in CreateTopicsRequest.VERSIONS:
            request = CreateTopicsRequest([CreatableTopic(f"v{version}", 1, 1)])
            answer: CreateTopicsResponse = await pair.broker.link.ask(request, version)
            assert [one.error_code for one in answer.topics] == [0]
        await until(lambda: len(pair.broker.controller.image.topics) == 6)

    async def test_errors_of_items_stay_in_the_response(self, pair: Pair) -> None:
        await pair.register()
        request = CreateTopicsRequest([CreatableTopic("no good name", 1, 1)])
        answer: CreateTopicsResponse = await pair.broker.link.ask(request)
        assert [one.error_code for one in answer.topics] == [InvalidTopicException.code]

    async def test_errors_of_whole_requests_are_raised(self, pair: Pair) -> None:
        epoch = await pair.register()
        with pytest.raises(StaleBrokerEpoch):
            await pair.broker.link.ask(BrokerHeartbeatRequest(4, epoch - 1))

    async def test_the_quorum_is_described(self, pair: Pair) -> None:
        for version in describe_quorum.DescribeQuorumRequest.VERSIONS:
            answer = await pair.broker.link.ask(DESCRIBE, version)
            assert answer.topics[0].partitions[0].leader_id == 1

    async def test_a_request_waits_for_a_controller(self, tmp_path: Path) -> None:
        pair = Pair(tmp_path)
        await pair.broker.start()
        asked = asyncio.ensure_future(pair.broker.link.ask(DESCRIBE))
        await asyncio.sleep(0.1)
        assert not asked.done()
        await pair.start_controller()
        assert (await asked).topics[0].partitions[0].leader_id == 1
        await pair.close()

    async def test_without_a_controller_the_time_is_up(self, tmp_path: Path) -> None:
        broker = node_in(tmp_path, {1: 1}, 4)
        await broker.start()
        with pytest.raises(RequestTimedOut, match=r"no controller answered in 0\.2 s"):
            await broker.link.ask(ORDERS, timeout_s=0.2)
        await broker.close()


class Elsewhere:
    """The replica and the controller of a node that follows a leader at a port."""

    node_id = 1
    is_leading = False

    def __init__(self, port: int) -> None:
        self.leadership = Leadership(1, 2, Node(2, HOST, port))


class FlawedController:
    """A leader that rejects the first requests, or loses their connections."""

    def __init__(self, faults: list[Exception | None]) -> None:
        self.faults = faults
        self.asked: list[Message] = []
        self.waiting = asyncio.Event()
        self.listener = ControllerListener(self.serve)

    async def serve(self, request: Message, version: int, caller: Caller) -> Message:
        if request.API_KEY == ApiKey.API_VERSIONS:
            return api_versions(0, {})
        self.asked.append(request)
        if self.faults:
            fault = self.faults.pop(0)
            if fault is not None:
                raise fault
            for connection in list(self.listener._connections):
                connection.close()
            await self.waiting.wait()
        if isinstance(request, BrokerHeartbeatRequest):
            return BrokerHeartbeatResponse(is_caught_up=True)
        return CreateTopicsResponse(topics=[CreatableTopicResult("orders")])


class TestFaults:
    async def asked(
        self, request: Message, faults: list[Exception | None], **options: Any
    ) -> tuple[Any, FlawedController]:
        controller = FlawedController(faults)
        sock = bound()
        await controller.listener.listen([sock])
        node = cast(Any, Elsewhere(port_of(sock)))
        link = ControllerLink(node, node)
        try:
            return await link.ask(request, **options), controller
        finally:
            link.close()
            controller.listener.close()

    @pytest.mark.parametrize("request_", [ORDERS, BrokerHeartbeatRequest(1)])
    async def test_a_request_is_repeated_when_the_leader_changes(self, request_: Message) -> None:
        faults: list[Exception | None] = [NotController("resigned"), NotController("resigned")]
        answer, controller = await self.asked(request_, faults)
        assert isinstance(answer, response_type_of(type(request_)))
        assert len(controller.asked) == 3

    @pytest.mark.parametrize("request_", [ORDERS, BrokerHeartbeatRequest(1)])
    async def test_a_request_is_repeated_when_the_connection_is_lost(
        self, request_: Message
    ) -> None:
        _, controller = await self.asked(request_, [None, None])
        assert len(controller.asked) == 3

    async def test_the_repeats_have_a_bound(self) -> None:
        loop = asyncio.get_running_loop()
        before = loop.time()
        with pytest.raises(RequestTimedOut):
            await self.asked(ORDERS, [NotController("resigned")] * 1000, timeout_s=0.3)
        assert loop.time() - before < 2

    async def test_other_errors_are_not_repeated(self) -> None:
        with pytest.raises(UnknownServerError):
            await self.asked(BrokerHeartbeatRequest(1), [UnknownServerError("a bug")])

    async def test_a_slow_decision_does_not_hold_up_heartbeats(self) -> None:
        controller = FlawedController([])
        hold = asyncio.Event()
        serve = controller.serve

        async def slow(request: Message, version: int, caller: Caller) -> Message:
            if isinstance(request, CreateTopicsRequest):
                await hold.wait()
            return await serve(request, version, caller)

        listener = ControllerListener(slow)
        sock = bound()
        await listener.listen([sock])
        node = cast(Any, Elsewhere(port_of(sock)))
        link = ControllerLink(node, node)
        creating = asyncio.ensure_future(link.ask(ORDERS))
        await link.ask(BrokerHeartbeatRequest(1))
        assert not creating.done()
        hold.set()
        await creating
        link.close()
        listener.close()

    async def test_a_request_to_a_paused_leader_goes_to_the_next_one(self) -> None:
        paused, next_ = FlawedController([]), FlawedController([])
        is_asked = asyncio.Event()

        async def pause(request: Message, version: int, caller: Caller) -> Message:
            if request.API_KEY != ApiKey.API_VERSIONS:
                is_asked.set()
                await asyncio.Event().wait()
            return await paused.serve(request, version, caller)

        first, second = bound(), bound()
        paused_listener = ControllerListener(pause)
        await paused_listener.listen([first])
        await next_.listener.listen([second])
        node = Elsewhere(port_of(first))
        link = ControllerLink(cast(Any, node), cast(Any, node))
        asking = asyncio.ensure_future(link.ask(ORDERS, timeout_s=20))
        await is_asked.wait()
        node.leadership = Leadership(2, 3, Node(3, HOST, port_of(second)))
        link.led_by(node.leadership)
        assert isinstance(await asking, CreateTopicsResponse)
        link.close()
        paused_listener.close()
        next_.listener.close()
