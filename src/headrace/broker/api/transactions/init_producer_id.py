"""InitProducerId v0-5: name a producer, so that what it sends again is recognised.

v3 lets a producer resume its id and epoch (KIP-360), which only a transactional one needs: an
idempotent one simply gets a new id. Transactional ids have no coordinator on this broker yet.
"""

from headrace.broker.api.registry import Call, api
from headrace.errors import CoordinatorNotAvailable, InvalidRequest, KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

_NONE = -1


def _refuse(
    request: InitProducerIdRequest, error: KafkaError, version: int
) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=_NONE, producer_epoch=_NONE)


@api(ApiKey.INIT_PRODUCER_ID, versions=range(6), refuse=_refuse)
async def init_producer_id(request: InitProducerIdRequest, call: Call) -> InitProducerIdResponse:
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        raise InvalidRequest("a producer id and its epoch are given together or not at all")
    if request.transactional_id is None:
        producer_id = await call.broker.producer_ids.allocate()
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    if not request.transactional_id:
        raise InvalidRequest("the transactional id is empty")
    raise CoordinatorNotAvailable("this broker has no transaction coordinator yet")
