"""Schemas by id from ready bytes: what every consumer asks first, answered before all routing.

Such an answer depends on nothing but the request and the state. So what the long way has answered
is kept as it was, and dropped when anything changes.
"""

from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.registry.service import Registry

_PREFIX = b"/schemas/ids/"
_KEPT_MAX = 20_000
_KEPT_BYTES_MAX = 64 << 20
_KEY_BYTES_MAX = 1_000
"""Requests that are longer are nobody's habit."""

Question = tuple[bytes, bytes, bytes]
"""Path, query and what the client accepts."""

Ready = tuple[Message, Message]


class QuickAnswers:
    """Stands before the application and lets through what it has no answer for."""

    def __init__(self, app: ASGIApp, registry: Registry) -> None:
        self._app = app
        self._registry = registry
        self._ready: dict[Question, Ready] = {}
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
        question = (path, scope["query_string"], _accepted(scope["headers"]))
        ready = self._kept().get(question)
        if ready is None:
            await self._ask(question, scope, receive, send)
            return
        self._registry.metrics.quick_answers += 1
        await send(ready[0])
        await send(ready[1])

    def _kept(self) -> dict[Question, Ready]:
        changes = self._registry.state.changes
        if self._changes != changes:
            self._ready.clear()
            self._kept_bytes = 0
            self._changes = changes
        return self._ready

    async def _ask(self, question: Question, scope: Scope, receive: Receive, send: Send) -> None:
        """The long way; a good answer is kept for the next one who asks so."""
        messages: list[Message] = []
        changes = self._registry.state.changes

        async def keep(message: Message) -> None:
            messages.append(message)
            await send(message)

        await self._app(scope, receive, keep)
        is_whole = len(messages) == 2 and not messages[1].get("more_body")
        is_good = is_whole and messages[0].get("status") == 200
        # While it was sent, what it says may have become old.
        if is_good and changes == self._registry.state.changes == self._changes:
            self._keep(question, (messages[0], messages[1]))

    def _keep(self, question: Question, ready: Ready) -> None:
        size = sum(map(len, question))
        if size > _KEY_BYTES_MAX:
            return
        size += len(ready[1].get("body", b""))
        if len(self._ready) >= _KEPT_MAX or self._kept_bytes + size > _KEPT_BYTES_MAX:
            self._ready.clear()
            self._kept_bytes = 0
        self._ready[question] = ready
        self._kept_bytes += size


def _accepted(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    for name, value in headers:
        if name == b"accept":
            return value
    return b""
