"""An HTTP product: its operations and common pages as one ASGI application, and its life.

A product is a list of operations. The kit adds `/health`, `/ready`, `/metrics` and
`/openapi.json`, and does what is the same for all: routing, authentication, roles, origins,
errors, request counters, listening and the graceful stop.
"""

import asyncio
import gc
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version

import msgspec
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from headrace.errors import HeadraceError
from headrace.http.access import OPEN, UNRESTRICTED, Access, Authentication, Roles, principal_of
from headrace.http.addresses import ListenAddress
from headrace.http.cors import OwnPages, check_origins
from headrace.http.errors import (
    DEFAULT_ERRORS,
    JSON,
    ClientDisconnected,
    ErrorAnswers,
    HttpError,
    MethodNotAllowed,
    NoSuchPath,
    internal_error,
)
from headrace.http.metrics import OPERATION_KEY, Counted, HttpMetrics
from headrace.http.operations import Operation, openapi, operation, operations_of
from headrace.http.routing import Router, allowed_methods, path_segments
from headrace.http.server import address_of, bind, event_loop, serve
from headrace.http.tls import ServerTls
from headrace.runtime.collector import freeze_collector
from headrace.runtime.exposition import CONTENT_TYPE, Family, render

_log = logging.getLogger(__name__)

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_HEADERS = ("Accept", "Authorization", "Content-Type")


class Status(msgspec.Struct, frozen=True):
    status: str


async def _always() -> None:
    """The check of a product that works as long as its process runs."""


def _segments(scope: Scope) -> Sequence[str]:
    return path_segments(scope["raw_path"])


@dataclass(frozen=True, kw_only=True)
class Product:
    """The parts of a product; also its ASGI application."""

    title: str
    operations: Sequence[Operation]
    """Without those that the kit adds."""
    families: Callable[[], Iterable[Family]]
    """The metrics of the product."""
    metrics: HttpMetrics = field(default_factory=HttpMetrics)
    check_health: Callable[[], Awaitable[None]] = _always
    """Raises `HttpError` if only a restart helps."""
    check_ready: Callable[[], Awaitable[None]] = _always
    """Raises `HttpError` while the product cannot answer."""
    errors: ErrorAnswers = DEFAULT_ERRORS
    authentication: Authentication = OPEN
    roles: Roles = UNRESTRICTED
    origins: Sequence[str] = ()
    """Origins of other sites whose pages may send requests."""
    prefix: str = ""
    """The path before all paths of the product, behind a reverse proxy that does not remove it."""
    sockets: Mapping[str, Callable[[WebSocket], Awaitable[None]]] = field(default_factory=dict)
    """WebSocket endpoints by path."""
    segments: Callable[[Scope], Sequence[str]] = _segments
    """Splits the path of a request."""
    allows_empty_segments: bool = False
    shortcut: Callable[[ASGIApp], ASGIApp] | None = None
    """Wraps the application, to answer frequent requests before they are routed."""
    on_stop: Callable[[], None] | None = None
    """Ends answers that have no end of their own."""
    connections_max: int = 1_000
    label: Callable[[Operation], str] = lambda operation: operation.metrics_label
    """The name of an operation in metrics; empty if it is not counted."""

    def __post_init__(self) -> None:
        check_origins(self.origins)

    @cached_property
    def all_operations(self) -> Sequence[Operation]:
        return [*self.operations, *operations_of(_Pages(self))]

    @cached_property
    def _app(self) -> ASGIApp:
        app: ASGIApp = _Application(self)
        if self.shortcut is not None:
            app = self.shortcut(app)
        if not self.authentication.is_open:
            open_paths = [f"{self.prefix}{path}" for path in ("/health", "/ready")]
            app = Access(app, self.authentication, open_paths, self.errors.render)
        app = OwnPages(app, self.origins, self.errors.render)
        if self.origins:
            app = CORSMiddleware(app, self.origins, _METHODS, _HEADERS)
        return Counted(app, self.metrics)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


@dataclass(frozen=True, slots=True)
class _Pages:
    """The operations that the kit adds."""

    product: Product

    @operation("GET /openapi.json")
    async def openapi(self, request: Request) -> Response:
        """The description of all operations."""
        product = self.product
        document = openapi(
            product.title,
            version("headrace"),
            product.all_operations,
            error=product.errors.body,
            has_tokens=product.authentication.tokens is not None,
            has_users=product.authentication.users is not None,
        )
        return Response(msgspec.json.encode(document), media_type=JSON)

    @operation("GET /health", answer=Status)
    async def health(self, request: Request) -> Response:
        """Report whether the server works."""
        await self.product.check_health()
        return Response(b'{"status":"healthy"}', media_type=JSON)

    @operation("GET /ready", answer=Status)
    async def ready(self, request: Request) -> Response:
        """Report whether the server can answer requests."""
        await self.product.check_ready()
        return Response(b'{"status":"ready"}', media_type=JSON)

    @operation("GET /metrics", answer_types=(CONTENT_TYPE,))
    async def metrics(self, request: Request) -> Response:
        """Metrics for Prometheus."""
        return Response("".join(render(self.product.families())), media_type=CONTENT_TYPE)


class _Application:
    """Finds the operation of a request, and answers what it raises."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self._prefix = path_segments(product.prefix.encode()) if product.prefix else []
        self._router = Router(
            ((one.method, one.path, (one, product.label(one))) for one in product.all_operations),
            allows_empty=product.allows_empty_segments,
        )
        self._sockets = Router(("GET", path, one) for path, one in product.sockets.items())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._connect(scope, receive, send)
            return
        try:
            response = await self._answer(scope, receive, send)
        except Exception as error:
            response = self._refusal(scope, error)
        await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Response:
        found = self._router.match(self._segments(scope))
        if not found:
            raise NoSuchPath(f"there is nothing at {scope['path']}")
        method = scope["method"]
        if method == "OPTIONS" and method not in found:
            return Response(status_code=204, headers={"Allow": allowed_methods(found)})
        target = found.get("GET" if method == "HEAD" else method)
        if target is None:
            raise MethodNotAllowed(
                f"{scope['path']} does not answer {method}",
                headers={"Allow": allowed_methods(found)},
            )
        (chosen, scope[OPERATION_KEY]), scope["path_params"] = target
        if self._product.roles is not UNRESTRICTED:
            self._product.roles.check(principal_of(scope), chosen.role)
        return await chosen.endpoint(Request(scope, receive, send))

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._sockets.match(self._segments(scope))
        if not found:  # Closed before it opens: the client sees a 403.
            await send({"type": "websocket.close", "code": 1000, "reason": ""})
            return
        endpoint, scope["path_params"] = found["GET"]
        await endpoint(WebSocket(scope, receive, send))

    def _segments(self, scope: Scope) -> Sequence[str]:
        segments = self._product.segments(scope)
        count = len(self._prefix)
        if not count:
            return segments
        if list(segments[:count]) != self._prefix:
            raise NoSuchPath(f"there is nothing at {scope['path']}")
        return segments[count:] or [""]

    def _refusal(self, scope: Scope, error: Exception) -> Response:
        fields = {"method": scope["method"], "path": scope["path"]}
        answer = self._http_error(error)
        if answer is None:
            _log.error("request failed", extra=fields, exc_info=error)
            answer = internal_error()
        elif answer.status >= 500 and answer.status != 503:
            fields |= {"status": answer.status, "error": str(answer)}
            _log.warning("request answered with a server error", extra=fields)
        return self._product.errors.render(answer)

    def _http_error(self, error: Exception) -> HttpError | None:
        """Return the answer to an error; None for a bug of ours."""
        if isinstance(error, ClientDisconnect):
            return ClientDisconnected("the connection ended before the body did")
        return self._product.errors.translate(error) if isinstance(error, HeadraceError) else None


@dataclass(frozen=True, slots=True)
class Listener:
    """The address of a product, its authentication and its TLS."""

    address: ListenAddress
    authentication: Authentication = OPEN
    tls: ServerTls | None = None


Build = Callable[[ListenAddress], AbstractAsyncContextManager[Product]]
"""Makes a product, given the address with its real port, and runs it until the block ends."""


def run(build: Build, listener: Listener, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; `on_ready` receives the URL.

    The port is taken first, because that fails most often.
    """
    socket = bind(listener.address)
    address = address_of(socket)
    scheme = "http" if listener.tls is None else "https"

    def ready() -> None:
        freeze_collector()
        on_ready(f"{scheme}://{address}")

    async def main() -> None:
        async with build(address) as product:
            await serve(
                product,
                socket,
                on_ready=ready,
                connections_max=product.connections_max,
                tls=listener.tls,
                has_websockets=bool(product.sockets),
                on_stop=product.on_stop,
                render=product.errors.render,
            )

    try:
        with asyncio.Runner(loop_factory=event_loop) as runner:
            runner.run(main())
    finally:
        gc.unfreeze()  # Frozen objects would never be finalized.


def stop_this_process() -> None:
    """Stop gracefully, as SIGTERM from outside does."""
    os.kill(os.getpid(), signal.SIGTERM)
