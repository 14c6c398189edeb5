"""InitProducerId: ids for idempotent producers, in blocks."""

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import InvalidRequest
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.init_producer_id import InitProducerIdRequest
from tests.unit.broker.api.builders import UnitBroker, a_broker, ask


@pytest.fixture
def broker(tmp_path: Path) -> UnitBroker:
    return a_broker(tmp_path)


@pytest.mark.parametrize("version", range(6))
async def test_every_producer_gets_its_own_id(broker: UnitBroker, version: int) -> None:
    """PRD-15: the id by which a producer's second sending of a batch is recognised."""
    request = InitProducerIdRequest(transactional_id=None)
    response = [await ask(broker, ApiKey.INIT_PRODUCER_ID, request, version) for _ in range(3)]
    assert [(one.error_code, one.producer_id, one.producer_epoch) for one in response] == [
        (0, 0, 0),
        (0, 1, 0),
        (0, 2, 0),
    ]


async def test_ids_come_in_blocks(broker: UnitBroker) -> None:
    request = InitProducerIdRequest(transactional_id=None)
    for _ in range(1001):
        response = await ask(broker, ApiKey.INIT_PRODUCER_ID, request)
    assert response.producer_id == 1000
    assert broker.controller.decisions == 2
    assert broker.image.next_producer_id == 2000


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"transactional_id": None, "producer_id": 5}, InvalidRequest),
        ({"transactional_id": None, "producer_epoch": 5}, InvalidRequest),
    ],
)
async def test_an_id_or_epoch_without_a_transactional_id_is_rejected(
    broker: UnitBroker, fields: dict[str, Any], error: type[InvalidRequest]
) -> None:
    response = await ask(broker, ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest(**fields))
    assert (response.error_code, response.producer_id, response.producer_epoch) == (
        error.code,
        -1,
        -1,
    )


async def test_a_producer_that_starts_again_gets_a_new_id(broker: UnitBroker) -> None:
    request = InitProducerIdRequest(transactional_id=None, producer_id=5, producer_epoch=3)
    response = await ask(broker, ApiKey.INIT_PRODUCER_ID, request)
    assert (response.error_code, response.producer_epoch) == (0, 0)
