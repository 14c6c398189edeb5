"""The producer ids that this broker may assign, fetched from the controller in blocks."""

import logging
from asyncio import Future, ensure_future, shield
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.errors import CoordinatorLoadInProgress, KafkaError, StaleBrokerEpoch, error_for
from headrace.protocol.schemas.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

if TYPE_CHECKING:
    from headrace.broker.metadata import ClusterMetadata

_log = logging.getLogger(__name__)

_FETCH_AT_LEFT = 0.1
"""The share of a block that is left when the next one is fetched."""


class ProducerIds:
    """The current block of ids, and the next one.

    The next block is fetched in the background before the current one is used up, so that
    producers wait for the first block only, or if the controller is slow.
    """

    def __init__(
        self, controller: "ClusterMetadata", node_id: int, broker_epoch: Callable[[], int]
    ) -> None:
        self._controller = controller
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._block = self._following = range(0)
        self._fetch_at = 0
        self._coming: Future[None] | None = None

    async def allocate(self) -> int:
        """Return an id that was never assigned before."""
        while not self._block:
            if self._following:
                self._block, self._following = self._following, range(0)
                self._fetch_at = int(len(self._block) * _FETCH_AT_LEFT)
            else:
                await self._wait_for_block()
        producer_id = self._block[0]
        self._block = self._block[1:]
        if len(self._block) <= self._fetch_at and not self._following:
            self._begin_fetch()
        return producer_id

    async def _wait_for_block(self) -> None:
        try:
            # A client that is gone must not cancel the request of the others.
            await shield(self._begin_fetch())
        except KafkaError as error:
            if error.retriable or isinstance(error, StaleBrokerEpoch):
                raise CoordinatorLoadInProgress(
                    f"no producer ids at the moment: {error}"
                ) from error
            raise

    def _begin_fetch(self) -> "Future[None]":
        if self._coming is None:
            self._coming = ensure_future(self._fetch())
            self._coming.add_done_callback(self._fetched)
        return self._coming

    async def _fetch(self) -> None:
        request = AllocateProducerIdsRequest(self._node_id, self._broker_epoch())
        block: AllocateProducerIdsResponse = await self._controller.ask(request)
        if block.error_code:
            raise error_for(block.error_code)
        start = block.producer_id_start
        self._following = range(start, start + block.producer_id_len)

    def _fetched(self, coming: "Future[None]") -> None:
        self._coming = None
        if coming.cancelled():
            return
        error = coming.exception()
        if isinstance(error, KafkaError):
            _log.warning("producer ids not allocated", extra={"error": str(error)})
        elif error is not None:
            _log.error(
                "producer ids not allocated", extra={"broker": self._node_id}, exc_info=error
            )
