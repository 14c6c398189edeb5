"""The life of a broker against a scripted controller, in virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from headrace.errors import (
    DuplicateBrokerRegistration,
    InconsistentClusterId,
    KafkaStorageError,
    NotController,
)
from headrace.peers.unreachable import PeerUnreachable
from headrace.protocol.message import Message
from headrace.protocol.schemas.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from headrace.protocol.schemas.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from headrace.quorum.lifecycle import BrokerLifecycle, NotRegistered
from tests.builders.virtual_time import in_virtual_time

INTERVAL_MS = 2000
REQUEST = BrokerRegistrationRequest(1)


class ScriptedController:
    """Answers as an active controller does whose only broker this is; errors come first."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.asked: list[tuple[float, Message]] = []
        self.is_caught_up = True
        self.may_shut_down = True
        self.is_gone = False

    async def ask(self, request: Message, *, timeout_s: float = 30.0) -> Message:
        self.asked.append((asyncio.get_running_loop().time(), request))
        if self.is_gone:
            raise PeerUnreachable("no process listens there", is_refused=True)
        if self.errors:
            raise self.errors.pop(0)
        if isinstance(request, BrokerRegistrationRequest):
            return BrokerRegistrationResponse(broker_epoch=7)
        assert isinstance(request, BrokerHeartbeatRequest)
        return BrokerHeartbeatResponse(
            is_caught_up=self.is_caught_up,
            is_fenced=request.want_fence or not self.is_caught_up,
            should_shut_down=request.want_shut_down and self.may_shut_down,
        )

    @property
    def beats(self) -> list[BrokerHeartbeatRequest]:
        return [one for _, one in self.asked if isinstance(one, BrokerHeartbeatRequest)]


Life = Callable[[BrokerLifecycle, ScriptedController], Coroutine[Any, Any, None]]


def lived(life: Life, *errors: Exception) -> ScriptedController:
    """Let a broker live; returns its controller."""
    controller = ScriptedController(*errors)

    async def run() -> None:
        lifecycle = BrokerLifecycle(controller.ask, 1, heartbeat_interval_ms=INTERVAL_MS)
        try:
            await life(lifecycle, controller)
        finally:
            await lifecycle.close()

    in_virtual_time(run())
    return controller


class TestRegistration:
    def test_a_broker_gets_its_epoch(self) -> None:
        async def life(broker: BrokerLifecycle, _: ScriptedController) -> None:
            assert await broker.register(REQUEST, 10) == 7
            assert broker.broker_epoch == 7

        assert [one for _, one in lived(life).asked] == [REQUEST]

    def test_it_is_repeated_while_the_old_session_lasts_or_no_controller_answers(self) -> None:
        async def life(broker: BrokerLifecycle, _: ScriptedController) -> None:
            assert await broker.register(REQUEST, 10) == 7

        errors = (
            DuplicateBrokerRegistration("broker 1 is alive"),
            NotController("no leader"),
            PeerUnreachable("connection refused"),
        )
        assert len(lived(life, *errors).asked) == 4

    def test_a_final_error_ends_it(self) -> None:
        async def life(broker: BrokerLifecycle, controller: ScriptedController) -> None:
            with pytest.raises(InconsistentClusterId):
                await broker.register(REQUEST, 10)
            assert len(controller.asked) == 1

        lived(life, InconsistentClusterId("another cluster"))

    def test_it_fails_when_the_time_is_up(self) -> None:
        async def life(broker: BrokerLifecycle, controller: ScriptedController) -> None:
            controller.is_gone = True
            with pytest.raises(NotRegistered, match=r"in 10 s.*controller\.quorum"):
                await broker.register(REQUEST, 10)
            assert 10 <= asyncio.get_running_loop().time() < 11

        lived(life)


class TestHeartbeats:
    def test_a_broker_stays_fenced_until_it_serves(self) -> None:
        async def life(broker: BrokerLifecycle, controller: ScriptedController) -> None:
            await broker.register(REQUEST, 10)
            broker.start()
            await asyncio.sleep(5)
            assert {one.want_fence for one in controller.beats} == {True}
            await broker.serve()
            assert not controller.beats[-1].want_fence

        assert {one.broker_epoch for one in lived(life).beats} == {7}

    def test_heartbeats_follow_the_interval_once_the_broker_is_settled(self) -> None:
        async def life(broker: BrokerLifecycle, controller: ScriptedController) -> None:
            broker.start()
            await broker.serve()
            await asyncio.sleep(0.1)
            before = len(controller.beats)
            await asyncio.sleep(20)
            assert len(controller.beats) - before == 10

        lived(life)

    def test_serving_waits_until_the_metadata_are_applied(self) -> None:
        async def life(broker: BrokerLifecycle, controller: ScriptedController) -> None:
            controller.is_caught_up = False
            broker.start()
            serving = asyncio.ensure_future(broker.serve())
            await asyncio.sleep(1)
            assert not serving.done()
            broker.applied_offset = 11
            controller.is_caught_up = True
            before = asyncio.get_running_loop().time()
            await serving
            assert asyncio.get_running_loop().time() - before < 0.1
            assert controller.beats[-1].current_metadata_offset == 11

        lived(life)

    def test_lost_controllers_are_asked_again(self) -> None:
        async def life(broker: BrokerLifecycle, _: ScriptedController) -> None:
            broker.start()
            await broker.serve()

        errors = NotController("resigned"), PeerUnreachable("lost")
        assert len(lived(life, *errors).beats) >= 3

    def test_failed_directories_are_repeated_and_the_first_time_at_once(self) -> None:
        async def life(broker: BrokerLifecycle, controller: ScriptedController) -> None:
            broker.start()
            await broker.serve()
            await asyncio.sleep(0.1)
            await broker.report_offline(b"a" * 16)
            await asyncio.sleep(0.1)
            assert controller.beats[-1].offline_log_dirs == [b"a" * 16]
            await broker.report_offline(b"b" * 16)
            await asyncio.sleep(INTERVAL_MS / 1000 * 3)
            repeated = controller.beats[-2:]
            assert [one.offline_log_dirs for one in repeated] == [[b"a" * 16, b"b" * 16]] * 2

        lived(life)


class TestLeaving:
    def test_a_broker_waits_until_its_leaderships_are_moved(self) -> None:
        async def life(broker: BrokerLifecycle, controller: ScriptedController) -> None:
            broker.start()
            await broker.serve()
            controller.may_shut_down = False
            leaving = asyncio.ensure_future(broker.leave())
            await asyncio.sleep(5)
            assert not leaving.done()
            controller.may_shut_down = True
            await leaving
            assert controller.beats[-1].want_shut_down

        lived(life)

    def test_heartbeats_go_on_calmly_while_the_node_closes_its_parts(self) -> None:
        async def life(broker: BrokerLifecycle, controller: ScriptedController) -> None:
            broker.start()
            await broker.serve()
            await broker.leave()
            before = len(controller.beats)
            await asyncio.sleep(10)
            assert len(controller.beats) - before <= 5

        lived(life)

    def test_a_broker_leaves_unfenced_if_no_controller_answers(self) -> None:
        async def life(broker: BrokerLifecycle, controller: ScriptedController) -> None:
            broker.start()
            await broker.serve()
            controller.is_gone = True
            before = asyncio.get_running_loop().time()
            await broker.leave()
            assert asyncio.get_running_loop().time() - before < 10

        lived(life)

    def test_a_broker_that_never_started_leaves_at_once(self) -> None:
        async def life(broker: BrokerLifecycle, _: ScriptedController) -> None:
            await broker.leave()

        assert lived(life).asked == []


class TestFailedMetadataLog:
    ERROR = KafkaStorageError("the metadata log failed")

    def test_nothing_is_waited_for(self) -> None:
        async def life(broker: BrokerLifecycle, controller: ScriptedController) -> None:
            controller.is_gone = True
            broker.start()
            serving = asyncio.ensure_future(broker.serve())
            await asyncio.sleep(1)
            before = asyncio.get_running_loop().time()
            broker.fail(self.ERROR)
            with pytest.raises(KafkaStorageError):
                await serving
            await broker.leave()
            assert asyncio.get_running_loop().time() == before

        lived(life)

    def test_registering_ends(self) -> None:
        async def life(broker: BrokerLifecycle, controller: ScriptedController) -> None:
            controller.is_gone = True
            registering = asyncio.ensure_future(broker.register(REQUEST, 1000))
            await asyncio.sleep(1)
            broker.fail(self.ERROR)
            with pytest.raises(KafkaStorageError):
                await registering
            assert asyncio.get_running_loop().time() < 2

        lived(life)
