"""The periodic decisions of the active controller: sessions that end, leaders out of place."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.controller import periodic
from headrace.controller.decision import ClusterDefaults, Decision
from headrace.errors import KafkaError
from headrace.metadata.image import MetadataImage

if TYPE_CHECKING:
    from headrace.controller.controller import Controller
    from headrace.runtime.clock import Clock

_log = logging.getLogger(__name__)

_LOOK_MS_MAX = 500
_RETRY_S = 0.5


class ControllerUpkeep:
    """Makes the decisions that no request asks for, while this node leads."""

    def __init__(self, controller: "Controller", clock: "Clock") -> None:
        self._controller = controller
        self._clock = clock
        self._news = asyncio.Event()
        now_ms = clock.monotonic_ms()
        self._gone: dict[int, int] = {}
        """The epochs of brokers whose process is gone, and whose session is to be ended."""
        self._written_ms = self._balanced_ms = self._elected_ms = self._swept_ms = now_ms

    def broker_gone(self, broker_id: int, broker_epoch: int) -> None:
        """End the session of a broker whose process is gone; a standby does so once it leads."""
        self._gone[broker_id] = broker_epoch
        self._news.set()

    async def run(self) -> None:
        while True:
            await self._controller.wait_until_active()
            try:
                await self._round()
            except KafkaError as error:
                _log.warning("periodic decision failed, retrying", extra={"error": str(error)})
                await asyncio.sleep(_RETRY_S)

    async def _round(self) -> None:
        """Make the decisions that are due, then wait for the next one."""
        settings = self._controller.settings
        now_ms = self._clock.monotonic_ms()
        self._news.clear()
        await self._fence()
        idle_ms = settings.metadata_max_idle_interval_ms
        if idle_ms and now_ms - self._written_ms >= idle_ms:
            self._written_ms = now_ms
            await self._controller.submit(lambda image: periodic.no_op())
        balance_ms = settings.leader_imbalance_check_interval_seconds * 1000
        if settings.auto_leader_rebalance_enable and now_ms - self._balanced_ms >= balance_ms:
            self._balanced_ms = now_ms
            await self._repeat(periodic.balance_leaders)
        if now_ms - self._elected_ms >= settings.unclean_leader_election_interval_ms:
            self._elected_ms = now_ms
            await self._repeat(periodic.retry_unclean_elections)
        sweep_ms = settings.delegation_token_expiry_check_interval_ms
        if settings.delegation_token_secret_key and now_ms - self._swept_ms >= sweep_ms:
            self._swept_ms = now_ms
            await self._remove_expired_tokens()
        try:
            async with asyncio.timeout(self._wait_ms(idle_ms) / 1000):
                await self._news.wait()
        except TimeoutError:
            return

    async def _fence(self) -> None:
        """Fence the brokers whose sessions have ended, one at a time."""
        while (fenced := await self._controller.submit(self._stale)) is not None:
            _log.info("broker fenced", extra={"broker": fenced})

    def _stale(self, image: MetadataImage) -> Decision[int | None]:
        sessions = self._controller.sessions
        if sessions is None:
            return Decision((), None)
        for broker_id, epoch in self._gone.items():
            broker = image.brokers.get(broker_id)
            if broker is not None and broker.epoch == epoch:
                sessions.expire(broker_id)
        self._gone.clear()
        defaults = ClusterDefaults.of(self._controller.settings)
        return periodic.fence_stale_broker(
            image, sessions.view, defaults, self._clock.monotonic_ms()
        )

    async def _remove_expired_tokens(self) -> None:
        now_ms = self._clock.now_ms()
        while removed := await self._controller.submit(
            lambda image: periodic.remove_expired_tokens(image, now_ms)
        ):
            _log.info("expired delegation tokens removed", extra={"tokens": removed})

    async def _repeat(
        self, decide: Callable[[MetadataImage, ClusterDefaults], Decision[Any]]
    ) -> None:
        """Repeat a decision until it has nothing left to change."""
        defaults = ClusterDefaults.of(self._controller.settings)
        while await self._controller.submit(lambda image: decide(image, defaults)):
            await asyncio.sleep(0)

    def _wait_ms(self, idle_ms: int) -> int:
        """Return the time until something is due, such as the end of the next session."""
        waits = [_LOOK_MS_MAX]
        if idle_ms:
            waits.append(idle_ms)
        sessions = self._controller.sessions
        if sessions is not None:
            expiry_ms = sessions.view.next_expiry_ms(self._controller.image)
            if expiry_ms is not None:
                waits.append(expiry_ms - self._clock.monotonic_ms() + 1)
        return max(1, min(waits))
