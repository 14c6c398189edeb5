"""EndTxn v0-5: commit or abort.

v2 adds PRODUCER_FENCED. Clients of transaction.version 2 send v5, whose response has the producer
id and epoch of the next transaction (KIP-890).
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.api.transactions.fencing import for_age
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.end_txn import EndTxnRequest, EndTxnResponse
from headrace.runtime.eager import eager
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request
from headrace.transactions.coordinator import ProducerIdAndEpoch

_RIGHTS = (for_request(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),)
_FENCED_FROM = 2
_EPOCH_BUMP_FROM = 5


def _refuse(request: EndTxnRequest, error: KafkaError, version: int) -> EndTxnResponse:
    return EndTxnResponse(error_code=for_age(error, version, _FENCED_FROM).code)


@api(ApiKey.END_TXN, versions=range(6), rights=_RIGHTS, refuse=_refuse)
@eager
async def end_txn(request: EndTxnRequest, call: Call) -> EndTxnResponse:
    call.access.check(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    producer = await call.broker.transactions.end(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        2 if call.version >= _EPOCH_BUMP_FROM else 0,
        is_commit=request.committed,
    )
    return EndTxnResponse(producer_id=producer.id, producer_epoch=producer.epoch)
