"""Blocks of producer ids: the next one is there before it is needed."""

import asyncio
from typing import Any, cast

import pytest

from headrace.broker.producer_ids import ProducerIds
from headrace.errors import CoordinatorLoadInProgress, StaleBrokerEpoch, UnknownServerError
from headrace.protocol.schemas.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

BLOCK = 1000


class Controller:
    """Gives out blocks when the test lets it."""

    def __init__(self) -> None:
        self.asked: list[AllocateProducerIdsRequest] = []
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.failure: Exception | None = None
        self.code = 0

    async def ask(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        self.asked.append(request)
        await self.is_open.wait()
        if self.failure is not None:
            raise self.failure
        return AllocateProducerIdsResponse(
            error_code=self.code,
            producer_id_start=(len(self.asked) - 1) * BLOCK,
            producer_id_len=BLOCK,
        )


@pytest.fixture
async def controller() -> Controller:
    return Controller()


def ids_of(controller: Controller, epochs: list[int] | None = None) -> ProducerIds:
    known = epochs or [5]
    return ProducerIds(cast(Any, controller), 1, lambda: known[-1])


async def test_the_next_block_is_fetched_when_a_tenth_is_left(controller: Controller) -> None:
    """PRD-15"""
    ids = ids_of(controller)
    for number in range(BLOCK - BLOCK // 10 - 1):
        assert await ids.allocate() == number
    assert len(controller.asked) == 1
    await ids.allocate()
    await asyncio.sleep(0)
    assert len(controller.asked) == 2


async def test_ids_go_on_while_the_next_block_is_coming(controller: Controller) -> None:
    ids = ids_of(controller)
    assert await ids.allocate() == 0
    controller.is_open.clear()
    assert [await ids.allocate() for _ in range(1, BLOCK)] == list(range(1, BLOCK))
    late = asyncio.ensure_future(ids.allocate())
    await asyncio.sleep(0)
    assert not late.done()
    controller.is_open.set()
    assert await late == BLOCK


async def test_all_that_wait_get_different_ids(controller: Controller) -> None:
    ids = ids_of(controller)
    assert sorted(await asyncio.gather(*(ids.allocate() for _ in range(9)))) == list(range(9))
    assert len(controller.asked) == 1


async def test_a_client_that_leaves_does_not_stop_the_others(controller: Controller) -> None:
    controller.is_open.clear()
    ids = ids_of(controller)
    waiting = [asyncio.ensure_future(ids.allocate()) for _ in range(2)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    controller.is_open.set()
    assert await waiting[1] == 0


async def test_a_broker_that_registers_again_sends_its_new_epoch(controller: Controller) -> None:
    epochs = [5]
    ids = ids_of(controller, epochs)
    controller.failure = StaleBrokerEpoch("registered again")
    with pytest.raises(CoordinatorLoadInProgress):
        await ids.allocate()
    controller.failure = None
    epochs.append(9)
    await ids.allocate()
    assert [one.broker_epoch for one in controller.asked] == [5, 9]


async def test_an_error_code_of_another_node_is_raised(controller: Controller) -> None:
    controller.code = UnknownServerError.code
    with pytest.raises(UnknownServerError):
        await ids_of(controller).allocate()
