"""`/topics/{topic}/stream`: records of a topic as they arrive."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from headrace.errors import HeadraceError
from headrace.http.errors import NotAcceptable
from headrace.http.negotiation import choose
from headrace.http.streams import EVENT_STREAM
from headrace.rest.errors import of_client, rendered
from headrace.rest.push import feeds, requested
from headrace.rest.push.delivering import Pieces, stopping
from headrace.rest.push.events import end, events
from headrace.rest.push.feeds import Feed
from headrace.rest.push.requested import StreamRequest
from headrace.rest.push.sockets import SocketStream, check_origin
from headrace.rest.routing import Routes, operation

_PATH = "/topics/{topic}/stream"


class StreamRoutes(Routes):
    """Streams as Server-Sent Events and by WebSocket."""

    def sockets(self) -> dict[str, Callable[[WebSocket], Awaitable[None]]]:
        return {_PATH: self.socket}

    @operation(
        "GET",
        _PATH,
        "Read records as they arrive, as Server-Sent Events; an event's id is the position"
        " after it, and Last-Event-ID resumes there. A WebSocket to the same address"
        " gets JSON messages, and with ack=client commits the records acknowledged by"
        ' {"type":"ack","partition":0,"offset":15}.',
        *requested.PARAMETERS,
        answer_types=(EVENT_STREAM,),
        errors={
            400: "A parameter is invalid; the message names it.",
            404: "The topic or partition does not exist.",
            406: "The client does not accept text/event-stream.",
            503: "The proxy has its maximum of clients.",
        },
    )
    async def stream(self, request: Request) -> Response:
        if choose(request.headers.get("accept", ""), (EVENT_STREAM,)) is None:
            raise NotAcceptable(f"HTTP 406 Not Acceptable: streams come as {EVENT_STREAM}")
        wanted = self._wanted(request, may_acknowledge=False)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.service.hub.client())
            feed = await self._feed(request, wanted)
            stack.push_async_callback(feed.close)
            pieces = Pieces(feed, wanted, self.service.schemas)
            answer = self.service.hub.streams.answer(
                events(request.scope, feed, pieces, wanted, self.service.settings),
                last=end(stopping()),
                context={"topic": wanted.topic},
            )
            return _Held(answer, stack.pop_all())

    async def socket(self, websocket: WebSocket) -> None:
        async with AsyncExitStack() as stack:
            try:
                check_origin(websocket, self.service.settings.origins)
                wanted = self._wanted(websocket, may_acknowledge=True)
                await stack.enter_async_context(self.service.hub.client())
                feed = await self._feed(websocket, wanted)
                stack.push_async_callback(feed.close)
                schemas, settings = self.service.schemas, self.service.settings
                stream = SocketStream(websocket, feed, wanted, schemas, settings)
            except HeadraceError as error:
                await websocket.send_denial_response(rendered(of_client(error)))
                return
            await websocket.accept()
            await stream.run(self.service.hub)

    def _wanted(self, connection: HTTPConnection, *, may_acknowledge: bool) -> StreamRequest:
        return requested.parsed(
            connection.path_params["topic"],
            dict(connection.query_params),
            connection.headers.get("last-event-id"),
            may_acknowledge=may_acknowledge,
        )

    async def _feed(self, connection: HTTPConnection, wanted: StreamRequest) -> Feed:
        properties = self.service.clients(connection).consumer_properties()
        return await feeds.opened(self.service.hub, properties, wanted)


class _Held(Response):
    """An answer that releases its resources when it ends, also by an error."""

    def __init__(self, answer: Response, held: AsyncExitStack) -> None:
        super().__init__()
        self._answer = answer
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._held:
            await self._answer(scope, receive, send)
