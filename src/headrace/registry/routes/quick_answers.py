"""Schemas by id from ready bytes: what every consumer asks first, answered before all routing.

The bytes are those of the usual way; they are dropped when anything changes.
"""

from collections.abc import Iterable

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.http.negotiation import choose
from headrace.registry.routes.answers import schema_by_id
from headrace.registry.routes.requests import ANSWER_TYPES
from headrace.registry.service import Registry

_PREFIX = b"/schemas/ids/"
_DIGITS_MAX = 9
_KEPT_MAX = 20_000

Ready = tuple[Message, Message]


class QuickAnswers:
    """Stands before the application and lets through what it has no answer for."""

    def __init__(self, app: ASGIApp, registry: Registry) -> None:
        self._app = app
        self._registry = registry
        self._ready: dict[tuple[bytes, bytes], Ready] = {}
        self._changes = -1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET" and not scope["query_string"]:
            path: bytes = scope["raw_path"]
            if path.startswith(_PREFIX):
                ready = self._answer(path, _accepted(scope["headers"]))
                if ready is not None:
                    self._registry.metrics.quick_answers += 1
                    await send(ready[0])
                    await send(ready[1])
                    return
        await self._app(scope, receive, send)

    def _answer(self, path: bytes, accept: bytes) -> Ready | None:
        state = self._registry.state
        if self._changes != state.changes or len(self._ready) > _KEPT_MAX:
            self._ready.clear()
            self._changes = state.changes
        ready = self._ready.get((path, accept))
        if ready is None:
            ready = self._made(path.removeprefix(_PREFIX), accept)
            if ready is not None:
                self._ready[path, accept] = ready
        return ready

    def _made(self, id: bytes, accept: bytes) -> Ready | None:
        if not id.isdigit() or len(id) > _DIGITS_MAX:
            return None
        entry = self._registry.state.by_id(int(id))
        answer_type = choose(accept.decode("latin-1"), ANSWER_TYPES)
        if entry is None or answer_type is None:
            return None
        body = msgspec.json.encode(schema_by_id(entry))
        headers = [
            (b"content-length", str(len(body)).encode()),
            (b"content-type", answer_type.encode()),
        ]
        return (
            {"type": "http.response.start", "status": 200, "headers": headers},
            {"type": "http.response.body", "body": body},
        )


def _accepted(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    for name, value in headers:
        if name == b"accept":
            return value
    return b""
