"""Schemas by id from ready bytes, answered before routing: the first request of every consumer.

Such an answer depends only on the request and the state, so the first one is kept until the state
changes.
"""

from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.http.metrics import OPERATION_KEY
from headrace.registry.service import Registry

_PREFIX = b"/schemas/ids/"
_KEPT_MAX = 20_000
_KEPT_BYTES_MAX = 64 << 20
_KEY_BYTES_MAX = 1_000
"""Longer requests are not kept."""

Key = tuple[bytes, bytes, bytes]
"""The path, the query and the Accept header."""

Ready = tuple[Message, Message]


class QuickAnswers:
    """Answers from the kept answers, and passes other requests to the application."""

    def __init__(self, app: ASGIApp, registry: Registry) -> None:
        self._app = app
        self._registry = registry
        self._ready: dict[Key, Ready] = {}
        self._kept_bytes = 0
        self._changes = -1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        path: bytes = scope["raw_path"]
        if not path.startswith(_PREFIX):
            await self._app(scope, receive, send)
            return
        key = (path, scope["query_string"], _accepted(scope["headers"]))
        ready = self._kept().get(key)
        if ready is None:
            await self._answer(key, scope, receive, send)
            return
        scope[OPERATION_KEY] = ""  # Counted apart.
        self._registry.metrics.quick_answers += 1
        await send(ready[0])
        await send(ready[1])

    def _kept(self) -> dict[Key, Ready]:
        changes = self._registry.state.changes
        if self._changes != changes:
            self._ready.clear()
            self._kept_bytes = 0
            self._changes = changes
        return self._ready

    async def _answer(self, key: Key, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer; keep the answer if it is a success."""
        messages: list[Message] = []
        changes = self._registry.state.changes

        async def keep(message: Message) -> None:
            messages.append(message)
            await send(message)

        await self._app(scope, receive, keep)
        is_whole = len(messages) == 2 and not messages[1].get("more_body")
        is_good = is_whole and messages[0].get("status") == 200
        # The state may have changed while the answer was sent.
        if is_good and changes == self._registry.state.changes == self._changes:
            self._keep(key, (messages[0], messages[1]))

    def _keep(self, key: Key, ready: Ready) -> None:
        size = sum(map(len, key))
        if size > _KEY_BYTES_MAX:
            return
        size += len(ready[1].get("body", b""))
        if len(self._ready) >= _KEPT_MAX or self._kept_bytes + size > _KEPT_BYTES_MAX:
            self._ready.clear()
            self._kept_bytes = 0
        self._ready[key] = ready
        self._kept_bytes += size


def _accepted(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    for name, value in headers:
        if name == b"accept":
            return value
    return b""
