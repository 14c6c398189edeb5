"""The metrics port: `/metrics` for Prometheus, `/health` and `/ready` for supervisors.

A small HTTP server without a web framework, which would cost an idle broker or a running pipeline
memory and start time. The size of a request, its time and the number of clients are bounded. Every
connection serves one request, and only GET and HEAD are supported. Callables provide the content.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

import msgspec

from headrace.runtime.addresses import address_text
from headrace.runtime.exposition import CONTENT_TYPE, Family, render

_log = logging.getLogger(__name__)

_REQUEST_BYTES_MAX = 8192
_REQUEST_SECONDS_MAX = 5.0
_WRITE_SECONDS_MAX = 15.0
_CLIENTS_MAX = 16

_STATUS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


class Health(msgspec.Struct, frozen=True):
    """A result with its checks, such as the state of each log directory."""

    is_ok: bool
    checks: Mapping[str, str] = {}


class Observability:
    """Serves the three pages until it is stopped."""

    def __init__(
        self,
        *,
        metrics: Callable[[], Iterable[Family]],
        health: Callable[[], Health],
        ready: Callable[[], Health],
        pages: Mapping[str, Callable[[], msgspec.Struct]] | None = None,
    ) -> None:
        """`pages` are further paths, and the objects that they show as JSON."""
        self._pages = pages or {}
        self._metrics = metrics
        self._verdicts = {"/health": health, "/ready": ready}
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Open the port and return its address; port 0 takes any free one."""
        address = await self.bind(host, port)
        await self.serve()
        return address

    async def serve(self) -> None:
        """Accept connections on the port that `bind` has claimed."""
        assert self._server is not None, "the port is bound first"
        await self._server.start_serving()

    async def bind(self, host: str, port: int) -> tuple[str, int]:
        """Claim the port without accepting connections yet."""
        self._server = await asyncio.start_server(
            self._accept, host, port, limit=_REQUEST_BYTES_MAX, start_serving=False
        )
        bound = self._server.sockets[0].getsockname()
        return bound[0], bound[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        tasks = list(self._serving)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._serving) >= _CLIENTS_MAX:
            _log.warning("metrics port full, connection refused", extra={"clients": _CLIENTS_MAX})
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(reader, writer)
        except (ConnectionError, TimeoutError):
            _log.debug("connection to the metrics port lost", extra=_peer(writer))
        except Exception:
            _log.exception("metrics request failed", extra=_peer(writer))
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS_MAX):
                head = await reader.readuntil(b"\r\n\r\n")
        except TimeoutError:
            return await _refuse(writer, 408, "the request took too long")
        except asyncio.LimitOverrunError:
            return await _refuse(writer, 431, "the request is too large")
        except asyncio.IncompleteReadError:
            return None
        parts = head.split(b"\r\n", 1)[0].split(b" ")
        if len(parts) != 3 or parts[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
            return await _refuse(writer, 400, "this is not an HTTP request")
        method, path = parts[0], parts[1].split(b"?")[0].decode("latin-1")
        if method not in (b"GET", b"HEAD"):
            return await _refuse(writer, 405, "only GET and HEAD are understood")
        if path == "/metrics":
            return await self._send_metrics(
                writer, is_chunked=parts[2] == b"HTTP/1.1", with_body=method == b"GET"
            )
        if path in self._verdicts:
            return await _send_verdict(writer, self._verdicts[path](), with_body=method == b"GET")
        if path in self._pages:
            body = msgspec.json.encode(self._pages[path]()) if method == b"GET" else b""
            return await _send(writer, 200, "application/json", body)
        return await _refuse(writer, 404, "there are /metrics, /health and /ready")

    async def _send_metrics(
        self, writer: asyncio.StreamWriter, *, is_chunked: bool, with_body: bool
    ) -> None:
        """Send the page piece by piece, with the event loop free for clients in between.

        The pieces are HTTP chunks, so that a truncated page is recognised as incomplete.
        """
        encoding = "Transfer-Encoding: chunked\r\n" if is_chunked else ""
        writer.write(_head(200, CONTENT_TYPE, encoding))
        for piece in render(self._metrics()) if with_body else ():
            data = piece.encode()
            writer.write(b"%x\r\n%b\r\n" % (len(data), data) if is_chunked else data)
            await _drain(writer)
            await asyncio.sleep(0)
        if is_chunked and with_body:
            writer.write(b"0\r\n\r\n")
        await _drain(writer)


def _head(status: int, content_type: str, more: str) -> bytes:
    return (
        f"HTTP/1.1 {status} {_STATUS[status]}\r\n"
        f"Content-Type: {content_type}\r\n"
        "Cache-Control: no-store\r\n"
        f"{more}"
        "Connection: close\r\n\r\n"
    ).encode()


def _peer(writer: asyncio.StreamWriter) -> dict[str, str]:
    host, port = writer.get_extra_info("peername", ("", 0))[:2]
    return {"connection": address_text(host, port)}


async def _send(
    writer: asyncio.StreamWriter,
    status: int,
    content_type: str,
    body: bytes,
    *,
    with_body: bool = True,
) -> None:
    writer.write(_head(status, content_type, f"Content-Length: {len(body)}\r\n"))
    if with_body:
        writer.write(body)
    await _drain(writer)


async def _send_verdict(writer: asyncio.StreamWriter, health: Health, *, with_body: bool) -> None:
    word = "ok" if health.is_ok else "failing"
    body = msgspec.json.encode({"status": word, "checks": health.checks}) + b"\n"
    status = 200 if health.is_ok else 503
    await _send(writer, status, "application/json", body, with_body=with_body)


async def _refuse(writer: asyncio.StreamWriter, status: int, reason: str) -> None:
    await _send(writer, status, "text/plain; charset=utf-8", reason.encode() + b"\n")


async def _drain(writer: asyncio.StreamWriter) -> None:
    async with asyncio.timeout(_WRITE_SECONDS_MAX):
        await writer.drain()
