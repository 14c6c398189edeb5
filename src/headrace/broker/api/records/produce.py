"""Produce v3-13: append record sets to the logs that this node leads.

The hottest request of all, so it is served from the frame as it lies (`protocol/hot_produce.py`):
a record set goes from the request's buffer to its log in one write. v13 names topics by id. What
belongs to a transaction goes through `produce_admission.py` first.
"""

from collections.abc import Coroutine
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.broker.api.registry import api
from headrace.broker.produce_admission import Admission, admit, is_transactional
from headrace.broker.produce_answers import Failures, write_with_failures
from headrace.broker.produce_appends import ProduceAppends, topics_by_key
from headrace.broker.repeated_produce import learn_shape
from headrace.errors import (
    InvalidRequiredAcks,
    KafkaError,
    TransactionalIdAuthorizationFailed,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.hot_produce import ProduceView, read_produce, write_success
from headrace.runtime.eager import finish_now
from headrace.storage.producer_state import NOT_VERIFIED

if TYPE_CHECKING:
    from headrace.broker.connection import Connection
    from headrace.broker.flushing import Lost
    from headrace.broker.node import Broker

_NO_TRANSACTION = Admission({}, NOT_VERIFIED)


class _Asked(NamedTuple):
    """A request, and who waits for its answer."""

    broker: "Broker"
    connection: "Connection"
    version: int
    correlation_id: int
    request: ProduceView


@api(ApiKey.PRODUCE, versions=range(3, 14))
def produce(
    broker: "Broker",
    connection: "Connection",
    frame: memoryview,
    position: int,
    version: int,
    correlation_id: int,
) -> None:
    request = read_produce(frame, position, version)
    asked = _Asked(broker, connection, version, correlation_id, request)
    refusal = _refusal(request)
    admission: Admission | Coroutine[Any, Any, Admission] = _NO_TRANSACTION
    if request.transactional_id is not None and refusal is None:
        try:
            admission = finish_now(admit(broker, request, version))
        except KafkaError as error:
            refusal = error
    if not isinstance(admission, Admission):
        # The frame itself lives until this returns.
        copied = read_produce(memoryview(bytearray(frame)), position, version)
        connection.wait()
        work = _produce_later(asked._replace(request=copied), admission)
        broker.tasks.start(work, "produce in a transaction")
        return
    appends = _append(asked, refusal, admission)
    if appends.heavy:
        connection.wait()
        broker.tasks.start(_answer_later(asked, appends), "fitting of large batches")
        return
    _answer(asked, appends)
    if request.acks and not appends.failures and not appends.unflushed:
        learn_shape(broker, connection, frame, version, request)


async def _produce_later(asked: _Asked, admission: Coroutine[Any, Any, Admission]) -> None:
    """The coordinator's word takes time: its record has to be committed first."""
    refusal = None
    verdict = _NO_TRANSACTION
    try:
        try:
            verdict = await admission
        except KafkaError as error:
            refusal = error
        appends = _append(asked, refusal, verdict)
    except Exception:
        asked.connection.fail()
        return
    await _answer_later(asked, appends)


async def _answer_later(asked: _Asked, appends: ProduceAppends) -> None:
    """Answer when all is appended; a connection that cannot be answered must not wait on."""
    try:
        if appends.heavy:
            await appends.append_heavy()
        _answer(asked, appends)
    except Exception:
        asked.connection.fail()


def _append(asked: _Asked, refusal: KafkaError | None, admission: Admission) -> ProduceAppends:
    appends = ProduceAppends(asked.broker, asked.version, admission)
    if refusal is None:
        appends.append_all(asked.request.topics)
    else:
        appends.refuse_all(asked.request.topics, refusal)
    return appends


def _answer(asked: _Asked, appends: ProduceAppends) -> None:
    """Tell what became of each batch, after a sync of the logs that ask for one."""
    connection = asked.connection
    if asked.request.acks == 0:
        _pass_silently(connection, appends.failures)
    elif appends.unflushed:
        _flush_and_answer(asked, appends)
    elif connection.is_waiting:
        connection.finish([_encoded(asked, appends)])
    else:
        connection.answer(_encoded(asked, appends))


def _pass_silently(connection: "Connection", failures: Failures) -> None:
    """acks=0 gets no answer; a closed connection is the only way to say that it went wrong."""
    if failures:
        connection.close()
    elif connection.is_waiting:
        connection.finish([])


def _flush_and_answer(asked: _Asked, appends: ProduceAppends) -> None:
    broker, connection, version = asked.broker, asked.connection, asked.version
    began_ns = perf_counter_ns()

    def finish(lost: "Lost") -> None:
        try:
            for place, error in _places_of(lost, asked).items():
                broker.metrics.requests.failed(ApiKey.PRODUCE, error.code)
                appends.failures[place] = error
            connection.finish([_encoded(asked, appends)])
        except Exception:  # Others wait for the same sync.
            connection.fail()
        waited_ns = perf_counter_ns() - began_ns
        broker.metrics.requests.served_late(ApiKey.PRODUCE, version, waited_ns, waited_ns=waited_ns)

    connection.wait()
    broker.flusher.flush(appends.unflushed, finish)


def _places_of(lost: "Lost", asked: _Asked) -> Failures:
    """Which partitions of a request lie in logs that could not be brought to the disk."""
    places: Failures = {}
    if not lost:
        return places
    hosted = topics_by_key(asked.broker, asked.version)
    for key, record_sets in asked.request.topics:
        topic = hosted.get(key)
        for index, _ in record_sets:
            if topic is None or not 0 <= index < len(topic.partitions):
                continue
            partition = topic.partitions[index]
            if partition is not None and partition.log is not None and partition.log in lost:
                places[key, index] = lost[partition.log]
    return places


def _encoded(asked: _Asked, appends: ProduceAppends) -> bytes | bytearray:
    _, _, version, correlation_id, request = asked
    if not appends.failures:
        return write_success(version, correlation_id, appends.done)
    return write_with_failures(
        version, correlation_id, request.topics, appends.done, appends.failures
    )


def _refusal(request: ProduceView) -> KafkaError | None:
    if request.acks not in (1, -1, 0):
        return InvalidRequiredAcks(f"acks must be 0, 1 or -1 (all), not {request.acks}")
    if request.transactional_id is None and any(
        is_transactional(records) for _, record_sets in request.topics for _, records in record_sets
    ):
        return TransactionalIdAuthorizationFailed(
            "records of a transaction need a transactional id in the request"
        )
    return None
