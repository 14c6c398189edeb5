"""From a frame to its handler and from what the handler says to the answer.

The one place where errors become codes: a `KafkaError` is told to the client, anything else is
our fault, is logged with its traceback and told as UNKNOWN_SERVER_ERROR. Bytes that are no
request at all end their connection and nothing else.
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
from headrace.broker.api.registry import APIS, Call, Entry, Handler
from headrace.broker.api.share.share_fetch import share_fetch
from headrace.broker.connection import Connection, HostileFrame
from headrace.broker.frame_buffers import Frames
from headrace.broker.repeated_produce import produce_again
from headrace.broker.repeated_requests import KEPT_BYTES_MAX, REPEATED, Repeated
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

if TYPE_CHECKING:
    from headrace.broker.node import Broker

_log = logging.getLogger(__name__)

_HEADER = Struct(">hhih")  # API key, version, correlation id, length of the client id.
_OPENING = Struct(">ii")  # API key and version in one, correlation id.
_ANSWER_IN_ROUND_BYTES_MAX = 8 * 1024  # Larger ones would pile up until the round ends.
_KEY_AND_VERSION = Struct(">hh")
_PRODUCE, _FETCH = int(ApiKey.PRODUCE), int(ApiKey.FETCH)
_SHARE_FETCH = int(ApiKey.SHARE_FETCH)
_API_VERSIONS = int(ApiKey.API_VERSIONS)


class RawEntry(NamedTuple):
    """An API whose handler answers the connection by itself.

    It is given the request, of which not too much is read; without a request type it is given
    the frame and the position of the request there, and sees to the limit itself.
    """

    key: int
    flexible_from: int
    versions: range
    handler: Callable[..., None]
    request_type: type[Message] | None = None


class Dispatcher:
    """Serves every frame of every connection of one broker."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._served = broker.metrics.requests.served
        self._round = broker.produce_round
        self._gather = broker.produce_round.take
        self._tasks: set[asyncio.Task[None]] = set()
        self._raw = {
            raw.key: raw
            for raw in (
                RawEntry(_PRODUCE, hot_produce.FLEXIBLE_FROM, APIS[_PRODUCE].versions, produce),
                RawEntry(
                    _FETCH, hot_fetch.FLEXIBLE_FROM, APIS[_FETCH].versions, fetch, FetchRequest
                ),
                RawEntry(
                    _SHARE_FETCH, 0, APIS[_SHARE_FETCH].versions, share_fetch, ShareFetchRequest
                ),
            )
        }

    def __call__(self, connection: Connection, data: Frames, position: int, end: int) -> None:
        shape = connection.produce_shape
        if shape is not None:
            if not connection.stashed_ns and self._gather(
                connection, shape, data, position - 4, end
            ):
                return
            if connection.gathered:
                self._round.settle()  # Or this request would overtake those before it.
                if connection.closed:
                    return
        began = perf_counter_ns()
        repeated = connection.repeated
        if repeated is not None and end - position == len(repeated.rest) + _OPENING.size:
            opening, correlation_id = _OPENING.unpack_from(data, position)
            rest = bytes(data[position + _OPENING.size : end])
            if opening == repeated.opening and rest == repeated.rest:
                self._serve_again(connection, repeated, correlation_id, began)
                return
        frame = memoryview(data)[position:end]
        try:
            key, version, correlation_id, client_size = _HEADER.unpack_from(frame)
            if key == _PRODUCE and produce_again(
                self._broker, connection, frame, version, correlation_id
            ):
                if connection.stashed_ns:
                    self._count(connection, key, version, began)
                else:
                    self._served(key, version, perf_counter_ns() - began)
                return
            raw = self._raw.get(key)
            if raw is None:
                self._serve(connection, frame, began)
                return
            self._serve_raw(raw, connection, frame, version, correlation_id, client_size)
        except (struct.error, IndexError, DecodeError) as error:
            raise _unreadable(frame, error) from error
        except HostileFrame:
            raise
        except Exception:
            connection.fail()
            return
        if not connection.is_waiting:
            self._count(connection, key, version, began)

    def _serve_raw(
        self,
        raw: RawEntry,
        connection: Connection,
        frame: memoryview,
        version: int,
        correlation_id: int,
        client_size: int,
    ) -> None:
        """Serve a request whose handler answers by itself."""
        if version not in raw.versions:
            raise _unsupported(raw.key, version)
        body = _HEADER.size + max(client_size, 0)
        if version >= raw.flexible_from:
            body = hot_produce.skip_tags(frame, body)
        if raw.request_type is None:
            raw.handler(self._broker, connection, frame, body, version, correlation_id)
            return
        _check_size(len(frame), raw.key)
        request, _ = read_bounded(raw.request_type, version, frame, body, ELEMENTS_MAX)
        raw.handler(self._broker, connection, request, version, correlation_id)

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
        # As in Kafka, bytes after the last field are nobody's business.
        request, _ = read_bounded(handler.request_type, version, frame, body, ELEMENTS_MAX)
        call = Call(self._broker, connection, version, header.client_id)
        if key in REPEATED and len(frame) <= KEPT_BYTES_MAX:
            opening, _ = _OPENING.unpack_from(frame)
            rest = bytes(frame[_OPENING.size :])
            connection.repeated = Repeated(opening, rest, entry, handler, request, call)
        self._call(connection, entry, handler, request, call, header.correlation_id, began)

    def _serve_again(
        self, connection: Connection, repeated: Repeated, correlation_id: int, began: int
    ) -> None:
        """Serve a request whose like was decoded before."""
        try:
            self._call(
                connection,
                repeated.entry,
                repeated.handler,
                repeated.request,
                repeated.call,
                correlation_id,
                began,
            )
        except Exception:
            connection.fail()

    def _call(
        self,
        connection: Connection,
        entry: Entry,
        handler: Handler,
        request: Any,
        call: Call,
        correlation_id: int,
        began: int,
    ) -> None:
        """Have a request handled, and answer it now or when its handler has what it waits for."""
        version = call.version
        try:
            answer = handler.function(request, call)
        except Exception as error:
            answer = handler.refuse(request, self._as_kafka_error(error, entry), version)
        if not isinstance(answer, bytes) and asyncio.iscoroutine(answer):
            connection.wait()
            task = self._broker.loop.create_task(
                self._finish(connection, entry, request, answer, correlation_id, version, began)
            )
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        frame = self._encode(answer, correlation_id, entry, version)
        if len(frame) <= _ANSWER_IN_ROUND_BYTES_MAX:
            connection.answer_in_round(frame)
        else:
            connection.answer(frame)
        self._count(connection, entry.key, version, began)

    async def _finish(
        self,
        connection: Connection,
        entry: Entry,
        request: Any,
        answer: Any,
        correlation_id: int,
        version: int,
        began: int,
    ) -> None:
        try:
            message = await answer
        except Exception as error:
            message = entry.handler().refuse(request, self._as_kafka_error(error, entry), version)
        connection.finish([self._encode(message, correlation_id, entry, version)])
        total_ns = perf_counter_ns() - began
        self._broker.metrics.requests.served_late(entry.key, version, total_ns, waited_ns=total_ns)

    def _count(self, connection: Connection, key: int, version: int, began: int) -> None:
        requests = self._broker.metrics.requests
        if connection.stashed_ns:
            queued_ns = began - connection.stashed_ns
            total_ns = perf_counter_ns() - connection.stashed_ns
            requests.served_late(key, version, total_ns, queued_ns=queued_ns)
        else:
            self._served(key, version, perf_counter_ns() - began)

    async def stop(self) -> None:
        """Let the requests under way end; their clients may be gone, their records are not."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        for task in list(self._tasks):
            task.cancel()

    @staticmethod
    def _as_kafka_error(error: Exception, entry: Entry) -> KafkaError:
        if isinstance(error, KafkaError):
            return error
        _log.error("%s failed", ApiKey(entry.key).name, exc_info=error)
        return UnknownServerError("the broker failed; its log has the details")

    def _encode(self, answer: Any, correlation_id: int, entry: Entry, version: int) -> bytes:
        """The answer as bytes; its errors are counted on the way.

        Kafka counts NONE as well, once for each partition that a request names. That would be
        work for every answer to learn what the count of requests says already.
        """
        if isinstance(answer, bytes):
            return frame_response(correlation_id, entry.key, version, answer)
        for code in entry.handler().error_codes(answer):
            self._broker.metrics.requests.failed(entry.key, code)
        return encode_response(correlation_id, entry.key, version, answer)

    def _answer_unsupported_api_versions(self, connection: Connection, correlation_id: int) -> None:
        """A client from the future is told, in v0, which versions it may use (KIP-511)."""
        from headrace.broker.api.cluster.api_versions import refuse_version

        connection.answer(encode_response(correlation_id, _API_VERSIONS, 0, refuse_version()))


def _check_size(size: int, key: int) -> None:
    if size > REQUEST_BYTES_MAX:
        raise HostileFrame(f"a request of {size} bytes is too large for {_name_of(key)}")


def _unsupported(key: int, version: int) -> HostileFrame:
    return HostileFrame(f"{_name_of(key)} v{version} is not served here")


def _unreadable(frame: memoryview, error: Exception) -> HostileFrame:
    """For the log: which request it was, and what is wrong with it in words, not in Python's."""
    if len(frame) < _KEY_AND_VERSION.size:
        return HostileFrame(f"a request of {len(frame)} bytes cannot be read: it ended too early")
    key, version = _KEY_AND_VERSION.unpack_from(frame)
    cause = error.__cause__
    reason = reading_failure(cause if isinstance(cause, Exception) else error)
    return HostileFrame(f"{_name_of(key)} v{version} cannot be read: {reason}")


def _name_of(key: int) -> str:
    return ApiKey(key).name if key in ApiKey._value2member_map_ else f"API {key}"
