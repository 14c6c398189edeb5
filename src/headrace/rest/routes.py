"""The HTTP face: all operations of the proxy, who may use them, and their description."""

from collections.abc import Sequence
from importlib.metadata import version

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute

from headrace.http import cors
from headrace.http.access import Access, Door
from headrace.http.errors import JSON
from headrace.http.metrics import Counted
from headrace.http.metrics import page as metrics_page
from headrace.http.operations import Operation, openapi, routes
from headrace.rest.errors import ErrorBody, handlers, rendered
from headrace.rest.metrics import families
from headrace.rest.page import page
from headrace.rest.push.routes import StreamRoutes
from headrace.rest.service import Service
from headrace.rest.v2.consumers import ConsumerRoutes
from headrace.rest.v2.produce import ProduceRoutes
from headrace.rest.v2.topics import TopicRoutes
from headrace.rest.v3 import topics as v3_topics
from headrace.rest.v3.acls import AclRoutes
from headrace.rest.v3.clusters import ClusterRoutes
from headrace.rest.v3.configs import ConfigRoutes
from headrace.rest.v3.groups import GroupRoutes
from headrace.rest.v3.moves import MoveRoutes
from headrace.rest.v3.multi_topic import MultiTopicRoutes
from headrace.rest.v3.quotas import QuotaRoutes
from headrace.rest.v3.records import RecordRoutes
from headrace.rest.v3.storage import StorageRoutes
from headrace.rest.v3.transactions import TransactionRoutes
from headrace.rest.webhooks.routes import SubscriptionRoutes
from headrace.runtime.exposition import CONTENT_TYPE

OPEN_PATHS = ("/health", "/ready")
_TITLE = "Headrace REST proxy"


class Status(msgspec.Struct, frozen=True):
    status: str


def application(
    service: Service,
    door: Door | None = None,
    more_operations: Sequence[Operation] = (),
    more_routes: Sequence[BaseRoute] = (),
) -> Starlette:
    """The ASGI application; other parts add operations, or routes that OpenAPI cannot tell."""
    operations = [*operations_of(service), *more_operations]
    described = _Description(service, operations, door or Door())
    origins = service.settings.origins
    middleware = [Middleware(Counted, metrics=service.metrics), *cors.middleware(origins)]
    middleware.append(Middleware(cors.OwnPages, origins=origins, render=rendered))
    if door is not None and not door.is_open:
        middleware.append(Middleware(Access, door=door, open_paths=OPEN_PATHS, render=rendered))
    return Starlette(
        routes=[
            *routes([*operations, *described.operations()]),
            *StreamRoutes(service).routes(),
            *more_routes,
        ],
        middleware=middleware,
        exception_handlers=handlers(),
    )


def operations_of(service: Service) -> list[Operation]:
    """Producing comes first: routes are looked at in their order."""
    return [
        *ProduceRoutes(service).operations(),
        *RecordRoutes(service).operations(),
        *MultiTopicRoutes(service).operations(),
        *ConsumerRoutes(service).operations(),
        *StreamRoutes(service).operations(),
        *SubscriptionRoutes(service).operations(),
        *TopicRoutes(service).operations(),
        *ClusterRoutes(service).operations(),
        *ConfigRoutes(service).operations(),
        *v3_topics.TopicRoutes(service).operations(),
        *GroupRoutes(service).operations(),
        *AclRoutes(service).operations(),
        *MoveRoutes(service).operations(),
        *StorageRoutes(service).operations(),
        *TransactionRoutes(service).operations(),
        *QuotaRoutes(service).operations(),
    ]


class _Description:
    """What the proxy says of itself."""

    def __init__(self, service: Service, operations: Sequence[Operation], door: Door) -> None:
        self._service = service
        self._operations = operations
        self._door = door

    def operations(self) -> list[Operation]:
        return [
            Operation("GET", "/", self.page, "This page.", answer_types=("text/html",)),
            Operation("GET", "/openapi.json", self.openapi, "The description of all operations."),
            Operation("GET", "/health", self.health, "Whether it works.", answer=Status),
            Operation("GET", "/ready", self.ready, "Whether a broker answers.", answer=Status),
            Operation(
                "GET", "/metrics", self.metrics, "For Prometheus.", answer_types=(CONTENT_TYPE,)
            ),
        ]

    async def page(self, request: Request) -> Response:
        if "text/html" not in request.headers.get("accept", ""):
            return Response(b"{}", media_type=JSON)  # What clients of version 2 expect there.
        return HTMLResponse(page(_TITLE, [*self._operations, *self.operations()]))

    async def openapi(self, request: Request) -> Response:
        document = openapi(
            _TITLE,
            version("headrace"),
            [*self._operations, *self.operations()],
            error=ErrorBody,
            has_tokens=self._door.tokens is not None,
            has_users=self._door.users is not None,
        )
        return Response(msgspec.json.encode(document), media_type=JSON)

    async def health(self, request: Request) -> Response:
        return Response(msgspec.json.encode(Status("healthy")), media_type=JSON)

    async def metrics(self, request: Request) -> Response:
        return metrics_page(families(self._service))

    async def ready(self, request: Request) -> Response:
        """Asked in the proxy's own name, so it says nothing of the caller's rights."""
        await self._service.identities.own().cluster_id()
        return Response(msgspec.json.encode(Status("ready")), media_type=JSON)
