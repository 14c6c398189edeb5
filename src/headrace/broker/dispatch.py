"""Serves frames: finds the handler of a request, calls it, and encodes its answer.

Errors become codes in this one place. A `KafkaError` is sent to the client. Any other exception is
our fault: it is logged with its traceback and sent as UNKNOWN_SERVER_ERROR. Bytes that are no
request close their connection and affect no other.
"""

import asyncio
import logging
import struct
from collections.abc import Callable
from struct import Struct
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.broker.api.records.fetch import fetch
from headrace.broker.api.records.produce import produce
from headrace.broker.api.registry import APIS, Call, Entry
from headrace.broker.api.share.share_fetch import share_fetch
from headrace.broker.connection import Connection, HostileFrame
from headrace.broker.direct_call import DirectCall
from headrace.broker.frame_buffers import Frames
from headrace.broker.quota_answers import EXEMPT, MUTATIONS, with_throttle_time
from headrace.broker.repeated_requests import KEPT_BYTES_MAX, REPEATED, Decoded
from headrace.errors import KafkaError, UnknownServerError
from headrace.protocol import hot_fetch, hot_produce
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import DecodeError, read_bounded
from headrace.protocol.framing import encode_response, frame_response, read_request_header
from headrace.protocol.message import Message
from headrace.protocol.primitives import reading_failure
from headrace.protocol.request_limits import ELEMENTS_MAX, REQUEST_BYTES_MAX
from headrace.protocol.schemas.fetch import FetchRequest
from headrace.protocol.schemas.share_fetch import ShareFetchRequest
from headrace.runtime.stopwatch import Stopwatch

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.broker.client_quotas import ClientQuotas, Meter
    from headrace.broker.produce.rounds import ProduceRound

_log = logging.getLogger(__name__)

_HEADER = Struct(">hhih")  # API key, version, correlation id, length of the client id.
_OPENING = Struct(">ii")  # API key and version in one, correlation id.
_ANSWER_IN_ROUND_BYTES_MAX = 8 * 1024  # Larger ones would pile up until the round ends.
_KEY_AND_VERSION = Struct(">hh")
_API_VERSIONS = int(ApiKey.API_VERSIONS)


class DirectEntry(NamedTuple):
    """An API whose handler answers the connection itself (`direct_call.py`).

    The handler gets the request; without a request type it gets the frame and the position of the
    request in it, and limits the decoding itself.
    """

    key: int
    flexible_from: int
    handler: Callable[..., None]
    request_type: type[Message] | None = None


_DIRECT = {
    entry.key: entry
    for entry in (
        DirectEntry(int(ApiKey.PRODUCE), hot_produce.FLEXIBLE_FROM, produce),
        DirectEntry(int(ApiKey.FETCH), hot_fetch.FLEXIBLE_FROM, fetch, FetchRequest),
        DirectEntry(int(ApiKey.SHARE_FETCH), 0, share_fetch, ShareFetchRequest),
    )
}


class Dispatcher:
    """Serves every frame of every connection of one broker."""

    def __init__(self, broker: "Broker", round_: "ProduceRound") -> None:
        self._broker = broker
        self._served_since = broker.metrics.requests.served_since
        self._round = round_
        self._take = round_.take
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.quotas: ClientQuotas | None = None
        """The quotas of clients; None while no client has one."""
        self.on_renamed: Callable[[Connection], None] | None = None
        """Called before a connection gets another client id."""

    def __call__(self, connection: Connection, data: Frames, position: int, end: int) -> None:
        shape = connection.produce_shape
        if shape is not None and self._take(connection, shape, data, position - 4, end):
            return
        if connection.gathered:
            self._round.settle()  # This request must not overtake them.
            if connection.closed:
                return
        began = perf_counter_ns()
        repeated = connection.repeated
        if isinstance(repeated, Decoded) and end - position == len(repeated.rest) + _OPENING.size:
            opening, correlation_id = _OPENING.unpack_from(data, position)
            rest = bytes(data[position + _OPENING.size : end])
            if opening == repeated.opening and rest == repeated.rest:
                try:
                    self._call(connection, repeated, correlation_id, began)
                except Exception:
                    connection.fail()
                return
        frame = memoryview(data)[position:end]
        try:
            key, version, correlation_id, client_size = _HEADER.unpack_from(frame)
            direct = _DIRECT.get(key)
            if direct is None:
                self._serve(connection, frame, began)
                return
            call = DirectCall(self._broker, connection, key, version, correlation_id)
            if self.quotas is not None or connection.client_id is None:
                name = bytes(frame[_HEADER.size : _HEADER.size + max(client_size, 0)])
                self._measure(connection, call, name.decode(errors="replace"))
                call.size = len(frame)
                call.began_ns = began
            _serve_direct(direct, call, frame, client_size)
        except (struct.error, IndexError, DecodeError) as error:
            raise _unreadable(frame, error) from error
        except HostileFrame:
            raise
        except Exception:
            connection.fail()
            return
        connection.requests += 1
        connection.spent_ns += perf_counter_ns() - began
        if not connection.is_waiting:
            self._served_since(began, connection.stashed_ns, key, version)

    def _serve(self, connection: Connection, frame: memoryview, began: int) -> None:
        header, body = read_request_header(frame)
        key, version = header.api_key, header.api_version
        _check_size(len(frame), key)
        entry = APIS.get(key)
        if entry is None or version not in entry.versions:
            if key != _API_VERSIONS:
                raise _unsupported(key, version)
            self._answer_unsupported_api_versions(connection, header.correlation_id)
            return
        handler = entry.handler()
        # As in Kafka, bytes after the last field are ignored.
        request, _ = read_bounded(handler.request_type, version, frame, body, ELEMENTS_MAX)
        if header.client_id != connection.client_id:
            self._name(connection, header.client_id or "")
        call = Call(self._broker, connection, version, header.client_id)
        if self.quotas is not None and key not in EXEMPT:
            call.meter = self._meter(connection, header.client_id or "")
        decoded = Decoded(entry, handler, request, call)
        if key in REPEATED and len(frame) <= KEPT_BYTES_MAX:
            decoded.opening, _ = _OPENING.unpack_from(frame)
            decoded.rest = bytes(frame[_OPENING.size :])
            connection.repeated = decoded
        self._call(connection, decoded, header.correlation_id, began)

    def _call(
        self, connection: Connection, decoded: Decoded, correlation_id: int, began: int
    ) -> None:
        """Call the handler, and answer now or when the coroutine that it returned has finished."""
        entry, request, call = decoded.entry, decoded.request, decoded.call
        connection.requests += 1
        try:
            answer = decoded.handler.function(request, call)
        except Exception as error:
            answer = self._refusal(decoded, error)
        if not isinstance(answer, bytes) and asyncio.iscoroutine(answer):
            connection.wait()
            answer = Stopwatch(answer)
            task = self._broker.loop.create_task(
                self._finish(connection, decoded, answer, correlation_id, began)
            )
            self._tasks[task] = None
            task.add_done_callback(self._tasks.pop)
            return
        spent_ns = perf_counter_ns() - began
        connection.spent_ns += spent_ns
        if call.meter is not None and (throttle_ms := call.meter.requested(spent_ns)):
            self._answer_and_mute(connection, decoded, answer, correlation_id, throttle_ms)
            self._broker.metrics.requests.served(entry.key, call.version, spent_ns)
            return
        frame = self._encode(answer, correlation_id, entry, call.version)
        if len(frame) <= _ANSWER_IN_ROUND_BYTES_MAX:
            connection.answer_in_round(frame)
        else:
            connection.answer(frame)
        self._served_since(began, connection.stashed_ns, entry.key, call.version)

    async def _finish(
        self,
        connection: Connection,
        decoded: Decoded,
        answer: Stopwatch[Any],
        correlation_id: int,
        began: int,
    ) -> None:
        entry, version, meter = decoded.entry, decoded.call.version, decoded.call.meter
        try:
            message = await answer
        except Exception as error:
            message = self._refusal(decoded, error)
        throttle_ms = 0 if meter is None else meter.requested(answer.spent_ns)
        connection.spent_ns += answer.spent_ns
        if entry.key in MUTATIONS:
            throttle_ms = max(throttle_ms, message.throttle_time_ms)
        if throttle_ms:
            self._answer_and_mute(connection, decoded, message, correlation_id, throttle_ms)
        else:
            connection.finish([self._encode(message, correlation_id, entry, version)])
        total_ns = perf_counter_ns() - began
        self._broker.metrics.requests.served_late(entry.key, version, total_ns, waited_ns=total_ns)

    def _answer_and_mute(
        self,
        connection: Connection,
        decoded: Decoded,
        answer: Any,
        correlation_id: int,
        throttle_ms: int,
    ) -> None:
        """Answer a client that exceeds a quota with its throttle time, and mute it for that."""
        entry, version = decoded.entry, decoded.call.version
        answer = with_throttle_time(answer, entry.key, version, throttle_ms)
        frame = self._encode(answer, correlation_id, entry, version)
        connection.finish_muted([frame], throttle_ms)

    def _measure(self, connection: Connection, call: DirectCall, client_id: str) -> None:
        """Find the quotas of a client, and note its name."""
        if client_id != connection.client_id:
            self._name(connection, client_id)
        if self.quotas is not None:
            call.meter = self._meter(connection, client_id)

    def _name(self, connection: Connection, client_id: str) -> None:
        """Note the client id of a connection; its requests before were those of another one."""
        if self.on_renamed is not None and connection.client_id is not None:
            self.on_renamed(connection)
        connection.client_id = client_id

    def _meter(self, connection: Connection, client_id: str) -> "Meter | None":
        assert self.quotas is not None
        return self.quotas.meter(connection.principal.name, client_id)

    async def stop(self) -> None:
        """Wait for the requests under way, whose records must be written before the logs close."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        for task in list(self._tasks):
            task.cancel()

    @staticmethod
    def _refusal(decoded: Decoded, error: Exception) -> Any:
        if not isinstance(error, KafkaError):
            fields = {"api": ApiKey(decoded.entry.key).name}
            _log.error("request failed", extra=fields, exc_info=error)
            error = UnknownServerError("the broker failed; its log has the details")
        return decoded.handler.refuse(decoded.request, error, decoded.call.version)

    def _encode(self, answer: Any, correlation_id: int, entry: Entry, version: int) -> bytes:
        """Encode an answer and count its errors.

        Kafka also counts NONE, once for each partition of a request. Headrace does not: it would
        cost time for every answer, and the number follows from the count of requests.
        """
        if isinstance(answer, bytes):
            return frame_response(correlation_id, entry.key, version, answer)
        for code in entry.handler().error_codes(answer):
            self._broker.metrics.requests.failed(entry.key, code)
        return encode_response(correlation_id, entry.key, version, answer)

    def _answer_unsupported_api_versions(self, connection: Connection, correlation_id: int) -> None:
        """Answer a client of a newer version in v0, with the supported versions (KIP-511)."""
        from headrace.broker.api.cluster.api_versions import refuse_version

        connection.answer(encode_response(correlation_id, _API_VERSIONS, 0, refuse_version()))


def _serve_direct(
    entry: DirectEntry, call: DirectCall, frame: memoryview, client_size: int
) -> None:
    if call.version not in APIS[entry.key].versions:
        raise _unsupported(entry.key, call.version)
    position = _HEADER.size + max(client_size, 0)
    if call.version >= entry.flexible_from:
        position = hot_produce.skip_tags(frame, position)
    if entry.request_type is None:
        entry.handler(frame, position, call)
        return
    _check_size(len(frame), entry.key)
    request, _ = read_bounded(entry.request_type, call.version, frame, position, ELEMENTS_MAX)
    entry.handler(request, call)


def _check_size(size: int, key: int) -> None:
    if size > REQUEST_BYTES_MAX:
        raise HostileFrame(f"a request of {size} bytes is too large for {_name_of(key)}")


def _unsupported(key: int, version: int) -> HostileFrame:
    return HostileFrame(f"{_name_of(key)} v{version} is not served here")


def _unreadable(frame: memoryview, error: Exception) -> HostileFrame:
    """Describe for the log which request it was, and what is wrong with it."""
    if len(frame) < _KEY_AND_VERSION.size:
        return HostileFrame(f"a request of {len(frame)} bytes cannot be read: it ended too early")
    key, version = _KEY_AND_VERSION.unpack_from(frame)
    cause = error.__cause__
    reason = reading_failure(cause if isinstance(cause, Exception) else error)
    return HostileFrame(f"{_name_of(key)} v{version} cannot be read: {reason}")


def _name_of(key: int) -> str:
    return ApiKey(key).name if key in ApiKey._value2member_map_ else f"API {key}"
