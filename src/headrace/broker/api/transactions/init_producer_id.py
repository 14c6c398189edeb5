"""InitProducerId v0-5: assign a producer id, or fence the last owner of a transactional id.

v3 lets a producer resume its id and epoch (KIP-360). Only transactional producers need this; an
idempotent producer gets a new id. v4 adds PRODUCER_FENCED.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.api.transactions.fencing import for_age
from headrace.errors import ClusterAuthorizationFailed, InvalidRequest, KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.runtime.eager import eager
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import Alternative, for_request
from headrace.transactions.coordinator import ProducerIdAndEpoch

_RIGHTS = (
    for_request(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "with a transactional id"),
    for_request(
        Operation.IDEMPOTENT_WRITE,
        ResourceType.CLUSTER,
        "without a transactional id",
        (Alternative(Operation.WRITE, ResourceType.TOPIC, is_any=True),),
    ),
)
_NONE = -1
_FENCED_FROM = 4


def _refuse(
    request: InitProducerIdRequest, error: KafkaError, version: int
) -> InitProducerIdResponse:
    code = for_age(error, version, _FENCED_FROM).code
    return InitProducerIdResponse(error_code=code, producer_id=_NONE, producer_epoch=_NONE)


@api(ApiKey.INIT_PRODUCER_ID, versions=range(6), rights=_RIGHTS, refuse=_refuse)
@eager
async def init_producer_id(request: InitProducerIdRequest, call: Call) -> InitProducerIdResponse:
    _check_right(request, call)
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        raise InvalidRequest("a producer id and its epoch must be set together")
    if request.transactional_id is None:
        producer_id = await call.broker.producer_ids.allocate()
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    expected = None
    if request.producer_id != _NONE:
        expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    producer = await call.broker.transactions.claim(
        request.transactional_id, request.transaction_timeout_ms, expected
    )
    return InitProducerIdResponse(producer_id=producer.id, producer_epoch=producer.epoch)


def _check_right(request: InitProducerIdRequest, call: Call) -> None:
    access = call.access
    if request.transactional_id is not None:
        access.check(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    elif not (
        access.allows_on_cluster(Operation.IDEMPOTENT_WRITE, is_audited=False)
        or access.allows_any(Operation.WRITE, ResourceType.TOPIC)
    ):
        raise ClusterAuthorizationFailed(
            f"{access.caller.principal} has the right to write to no topic"
        )
