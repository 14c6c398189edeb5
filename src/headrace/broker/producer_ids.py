"""The producer ids that this broker may give out, fetched from the controller in blocks."""

from asyncio import Future, ensure_future
from typing import TYPE_CHECKING

from headrace.controller.producer_ids import ProducerIdBlock, allocate_producer_ids

if TYPE_CHECKING:
    from headrace.broker.node import Broker


class ProducerIds:
    """One block at a time; producers that find it empty wait together for the next."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._next = self._end = 0
        self._coming: Future[None] | None = None

    async def allocate(self) -> int:
        """An id that no producer has ever had."""
        while self._next == self._end:
            if self._coming is None:
                self._coming = ensure_future(self._fetch())
            await self._coming
        producer_id = self._next
        self._next += 1
        return producer_id

    async def _fetch(self) -> None:
        try:
            block = await self._broker.controller.submit(
                lambda image: allocate_producer_ids(
                    image, self._broker.node_id, image.brokers[self._broker.node_id].epoch
                )
            )
            self._take(block)
        finally:
            self._coming = None

    def _take(self, block: ProducerIdBlock) -> None:
        self._next, self._end = block.first, block.first + block.size
