"""`/topics/{topic}/stream`: the one address of a topic's records as they come."""

from contextlib import AsyncExitStack

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from headrace.errors import HeadraceError
from headrace.http.errors import NotAcceptable
from headrace.http.negotiation import choose
from headrace.http.operations import Operation, Parameter
from headrace.rest.errors import of_client, rendered
from headrace.rest.push import feeds, requested
from headrace.rest.push.events import EVENT_STREAM, EventStream
from headrace.rest.push.feeds import Feed
from headrace.rest.push.requested import StreamRequest
from headrace.rest.push.sockets import SocketStream, check_origin
from headrace.rest.service import Service

_PATH = "/topics/{topic}/stream"


class StreamRoutes:
    """Streams by both ways."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._hub = service.hub

    def operations(self) -> list[Operation]:
        return [
            Operation(
                "GET",
                _PATH,
                self.stream,
                "Get records as they come, as Server-Sent Events; an event's id is the position"
                " after it, and Last-Event-ID goes on from there. A WebSocket to the same address"
                " gets JSON messages, and with ack=client commits what it acknowledges by"
                ' {"type":"ack","partition":0,"offset":15}.',
                (Parameter("topic", "The topic.", "path"), *requested.PARAMETERS),
                answer_types=(EVENT_STREAM,),
                errors={
                    400: "A parameter is wrong; the message says which.",
                    404: "There is no such topic or partition.",
                    406: "The client does not take text/event-stream.",
                    503: "As many clients listen as may.",
                },
            )
        ]

    def routes(self) -> list[BaseRoute]:
        return [WebSocketRoute(_PATH, self.socket)]

    async def stream(self, request: Request) -> Response:
        if choose(request.headers.get("accept", ""), (EVENT_STREAM,)) is None:
            raise NotAcceptable(f"HTTP 406 Not Acceptable: streams come as {EVENT_STREAM}")
        wanted = self._wanted(request, may_acknowledge=False)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._hub.client())
            feed = await self._feed(request, wanted)
            stack.push_async_callback(feed.close)
            schemas, settings = self._service.schemas, self._service.settings
            answer = EventStream(feed, wanted, schemas, self._hub, settings)
            return _Held(answer, stack.pop_all())

    async def socket(self, websocket: WebSocket) -> None:
        async with AsyncExitStack() as stack:
            try:
                check_origin(websocket, self._service.settings.origins)
                wanted = self._wanted(websocket, may_acknowledge=True)
                await stack.enter_async_context(self._hub.client())
                feed = await self._feed(websocket, wanted)
                stack.push_async_callback(feed.close)
                schemas, settings = self._service.schemas, self._service.settings
                stream = SocketStream(websocket, feed, wanted, schemas, settings)
            except HeadraceError as error:
                await websocket.send_denial_response(rendered(of_client(error)))
                return
            await websocket.accept()
            await stream.run(self._hub)

    def _wanted(self, connection: HTTPConnection, *, may_acknowledge: bool) -> StreamRequest:
        return requested.parsed(
            connection.path_params["topic"],
            dict(connection.query_params),
            connection.headers.get("last-event-id"),
            may_acknowledge=may_acknowledge,
        )

    async def _feed(self, connection: HTTPConnection, wanted: StreamRequest) -> Feed:
        properties = self._service.clients(connection).consumer_properties()
        return await feeds.opened(self._hub, properties, wanted)


class _Held(Response):
    """An answer that gives back what it holds at its end, whatever end that is."""

    def __init__(self, answer: Response, held: AsyncExitStack) -> None:
        super().__init__()
        self._answer = answer
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._held:
            await self._answer(scope, receive, send)
