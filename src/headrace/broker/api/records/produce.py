"""Produce v3-13: append record sets to the logs that this node leads.

The hottest request of all, so it is decoded in place in its frame (`protocol/hot_produce.py`):
a record set goes from the request's buffer to its log in one write. v13 names topics by id. The
steps are those of the package `broker/produce`.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from headrace.broker.api.registry import api
from headrace.broker.produce.admission import NO_TRANSACTION, Admission, admit
from headrace.broker.produce.request import ProduceRequest, check_request
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.hot_produce import ProduceView, read_produce
from headrace.runtime.eager import finish_now

if TYPE_CHECKING:
    from headrace.broker.direct_call import DirectCall


# Kafka claims Produce from v0 because librdkafka below 2.12 asks for it; it serves v3 up.
@api(ApiKey.PRODUCE, versions=range(3, 14), advertised_from=0)
def produce(frame: memoryview, position: int, call: "DirectCall") -> None:
    view = read_produce(frame, position, call.version)
    admission: Admission | Awaitable[Admission] = NO_TRANSACTION
    refusal = None
    try:
        check_request(view)
        if view.transactional_id is not None:
            admission = finish_now(admit(call.broker, view, call.version))
    except KafkaError as error:
        refusal = error
    if not isinstance(admission, Admission):
        # The frame is overwritten as soon as this function returns.
        copy = read_produce(memoryview(bytearray(frame)), position, call.version)
        call.park()
        call.broker.tasks.start(_produce_later(call, copy, admission), "produce in a transaction")
        return
    request = _appended(call, view, admission, refusal)
    if request.heavy:
        call.park()
        call.broker.tasks.start(_answer_later(call, request), "validation of heavy batches")
        return
    request.answer()
    request.learn_shape(frame)


async def _produce_later(
    call: "DirectCall", view: ProduceView, admission: Awaitable[Admission]
) -> None:
    """Append when the coordinator has committed its decision."""
    refusal = None
    verdict = NO_TRANSACTION
    try:
        try:
            verdict = await admission
        except KafkaError as error:
            refusal = error
        request = _appended(call, view, verdict, refusal)
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
    call: "DirectCall", view: ProduceView, admission: Admission, refusal: KafkaError | None
) -> ProduceRequest:
    request = ProduceRequest(call, view, admission)
    if refusal is None:
        request.append_all()
    else:
        request.refuse_all(refusal)
    return request
