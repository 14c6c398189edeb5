"""The life of this broker as the active controller sees it: registered, fenced, serving, leaving.

Heartbeats keep the session of the broker. They run beside the data port, so that neither a large
request nor the recovery of logs ends the session.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from headrace.errors import DuplicateBrokerRegistration, HeadraceError, KafkaError
from headrace.peers.unreachable import PeerUnreachable
from headrace.protocol.schemas.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)

if TYPE_CHECKING:
    from headrace.protocol.schemas.broker_registration import BrokerRegistrationRequest
    from headrace.protocol.uuids import Uuid

_log = logging.getLogger(__name__)

_RETRY_S = 0.1
_CATCHING_UP_S = 0.01
_HEARTBEAT_TIMEOUT_S = 4.5
_SHUT_DOWN_TIMEOUT_S = 300.0
_ALONE_S = 3.0
"""Time without any answer after which a broker stops all the same: a majority has stopped."""

Ask = Callable[..., Awaitable[Any]]


class NotRegistered(HeadraceError):
    """The active controller did not register the broker in time."""


class BrokerLifecycle:
    """Registration and heartbeats of one broker, on the event loop of the quorum."""

    def __init__(self, ask: Ask, broker_id: int, *, heartbeat_interval_ms: int) -> None:
        """`ask` sends a request to the present controller, once."""
        self._ask = ask
        self._broker_id = broker_id
        self._interval_s = heartbeat_interval_ms / 1000
        self._wake = asyncio.Event()
        self._beating: asyncio.Task[None] | None = None
        self._unfenced = asyncio.Event()
        self._may_shut_down = asyncio.Event()
        self._wants_to_serve = False
        self._wants_to_leave = False
        self._offline: list[Uuid] = []
        self._failure: KafkaError | None = None
        self.broker_epoch = -1
        self.applied_offset = -1
        """The offset of the metadata that the broker has applied; set by the data port's thread."""

    # --- registration -----------------------------------------------------------------------------

    async def register(self, request: "BrokerRegistrationRequest", timeout_s: float) -> int:
        """Register until it succeeds or the time is up; return the epoch of the broker.

        After a crash the controller may take the old incarnation for alive until its session
        ends.
        """
        deadline = asyncio.get_running_loop().time() + timeout_s
        while True:
            try:
                answer = await self._ask(request)
            except (KafkaError, PeerUnreachable) as error:
                if self._failure is not None:
                    raise self._failure from error
                is_final = isinstance(error, KafkaError) and not (
                    error.retriable or isinstance(error, DuplicateBrokerRegistration)
                )
                if is_final:
                    raise
                if asyncio.get_running_loop().time() >= deadline:
                    raise NotRegistered(
                        f"no controller registered this broker in {timeout_s:g} s: {error}. Are a "
                        "majority of the controllers running, and do "
                        "controller.quorum.bootstrap.servers or controller.quorum.voters name them?"
                    ) from error
                await asyncio.sleep(_RETRY_S)
            else:
                self.broker_epoch = answer.broker_epoch
                return self.broker_epoch

    # --- heartbeats -------------------------------------------------------------------------------

    def start(self) -> None:
        """Send heartbeats from now on; the broker stays fenced until `serve`."""
        self._beating = asyncio.get_running_loop().create_task(self._beat())

    async def serve(self) -> None:
        """Have the broker unfenced: its logs are loaded. Returns when clients may find it."""
        self._wants_to_serve = True
        self._wake.set()
        await self._unfenced.wait()
        if self._failure is not None:
            raise self._failure

    async def leave(self) -> None:
        """Have the leaderships of the broker moved away; returns when it may stop, or must."""
        if self._beating is None or self._beating.done():
            return
        self._wants_to_leave = True
        self._wake.set()
        try:
            async with asyncio.timeout(_SHUT_DOWN_TIMEOUT_S):
                await self._may_shut_down.wait()
        except TimeoutError:
            _log.warning("broker stops unfenced", extra={"error": "no controller answers"})

    async def report_offline(self, directory_id: "Uuid") -> None:
        """Report a failed log directory with every heartbeat, and with one at once."""
        self._offline.append(directory_id)
        self._wake.set()

    def fail(self, error: KafkaError) -> None:
        """Wait for nothing any more: the metadata log of this node has failed, so it must stop."""
        self._failure = error
        self._unfenced.set()
        self._may_shut_down.set()

    async def close(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        answered_at = loop.time()
        while True:
            self._wake.clear()
            try:
                pause_s = self._apply(await self._send())
                answered_at = loop.time()
            except HeadraceError as error:
                _log.debug("heartbeat failed, retrying", extra={"error": str(error)})
                pause_s = _RETRY_S
                if self._wants_to_leave and loop.time() - answered_at >= _ALONE_S:
                    _log.warning("broker stops unfenced", extra={"error": str(error)})
                    self._may_shut_down.set()
            try:
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _send(self) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            self._broker_id,
            self.broker_epoch,
            current_metadata_offset=self.applied_offset,
            want_fence=not self._wants_to_serve,
            want_shut_down=self._wants_to_leave,
            offline_log_dirs=list(self._offline),
        )
        response: BrokerHeartbeatResponse = await self._ask(request, timeout_s=_HEARTBEAT_TIMEOUT_S)
        return response

    def _apply(self, answer: BrokerHeartbeatResponse) -> float:
        """Follow an answer; return the seconds until the next heartbeat."""
        if answer.should_shut_down:
            self._may_shut_down.set()
            return self._interval_s
        if not answer.is_fenced and self._wants_to_serve:
            self._unfenced.set()
        is_settled = answer.is_caught_up and answer.is_fenced != self._wants_to_serve
        return self._interval_s if is_settled and not self._wants_to_leave else _CATCHING_UP_S
