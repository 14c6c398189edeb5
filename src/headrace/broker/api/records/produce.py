"""Produce v3-13: append record sets to the logs that this node leads.

The hottest request of all, so it is decoded in place in its frame (`protocol/hot_produce.py`):
a record set goes from the request's buffer to its log in one write. v13 names topics by id. The
steps are those of the package `broker/produce`.
"""

from collections.abc import Awaitable, Collection
from typing import TYPE_CHECKING

from headrace.broker.api.registry import api
from headrace.broker.produce.admission import NO_TRANSACTION, Admission, admit
from headrace.broker.produce.permission import check_transaction, forbidden_topics
from headrace.broker.produce.request import ProduceRequest, check_request
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.hot_produce import ProduceView, TopicKey, read_produce
from headrace.runtime.eager import finish_now
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each, for_request

if TYPE_CHECKING:
    from headrace.broker.direct_call import DirectCall

_RIGHTS = (
    for_request(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "records of a transaction"),
    for_each(Operation.WRITE, ResourceType.TOPIC),
)


# Kafka claims Produce from v0 because librdkafka below 2.12 asks for it; it serves v3 up.
@api(ApiKey.PRODUCE, versions=range(3, 14), rights=_RIGHTS, advertised_from=0)
def produce(frame: memoryview, position: int, call: "DirectCall") -> None:
    view = read_produce(frame, position, call.version)
    admission: Admission | Awaitable[Admission] = NO_TRANSACTION
    refusal = None
    forbidden: Collection[TopicKey] = ()
    try:
        if call.broker.authorizer is not None:
            check_transaction(view, call.access)
            forbidden = forbidden_topics(call.broker, view, call.version, call.access)
        check_request(view)
        if view.transactional_id is not None:
            admission = finish_now(admit(call.broker, view, call.version, forbidden))
    except KafkaError as error:
        refusal = error
    if not isinstance(admission, Admission):
        # The frame is overwritten as soon as this function returns.
        copy = read_produce(memoryview(bytearray(frame)), position, call.version)
        call.park()
        work = _produce_later(call, copy, admission, forbidden)
        call.broker.tasks.start(work, "produce in a transaction")
        return
    request = _appended(call, view, admission, refusal, forbidden)
    if request.heavy:
        call.park()
        call.broker.tasks.start(_answer_later(call, request), "validation of heavy batches")
        return
    request.answer()
    request.learn_shape(frame)


async def _produce_later(
    call: "DirectCall",
    view: ProduceView,
    admission: Awaitable[Admission],
    forbidden: Collection[TopicKey],
) -> None:
    """Append when the coordinator has committed its decision."""
    refusal = None
    verdict = NO_TRANSACTION
    try:
        try:
            verdict = await admission
        except KafkaError as error:
            refusal = error
        request = _appended(call, view, verdict, refusal, forbidden)
    except Exception:
        call.connection.fail()
        return
    await _answer_later(call, request)


async def _answer_later(call: "DirectCall", request: ProduceRequest) -> None:
    """Answer when all is appended; a connection that cannot be answered is closed."""
    try:
        if request.heavy:
            await request.append_heavy()
        request.answer()
    except Exception:
        call.connection.fail()


def _appended(
    call: "DirectCall",
    view: ProduceView,
    admission: Admission,
    refusal: KafkaError | None,
    forbidden: Collection[TopicKey],
) -> ProduceRequest:
    request = ProduceRequest(call, view, admission, forbidden)
    if refusal is None:
        request.append_all()
    else:
        request.refuse_all(refusal)
    return request
