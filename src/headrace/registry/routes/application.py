"""The HTTP face of a registry as one ASGI application."""

import logging
from importlib.metadata import version
from time import perf_counter_ns

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.http.access import Access, Door
from headrace.http.cors import OwnPages
from headrace.http.errors import JSON, HttpError, NotFound, Unavailable
from headrace.http.operations import Operation, openapi
from headrace.registry.errors import ErrorMessage, RegistryError, rendered
from headrace.registry.metrics import families
from headrace.registry.routes.answers import Deployment, ServerId, ServerVersion
from headrace.registry.routes.operations import Answering, operation
from headrace.registry.routes.quick_answers import QuickAnswers
from headrace.registry.routes.requests import CONTEXT_PREFIX, Call
from headrace.registry.routes.routing import Match, Router, target_of
from headrace.registry.routes.schemas import SchemaRoutes
from headrace.registry.routes.scopes import SettingRoutes
from headrace.registry.routes.subjects import SubjectRoutes
from headrace.registry.service import Registry
from headrace.runtime.exposition import CONTENT_TYPE, render
from headrace.serdes.subject_names import EVERY_CONTEXT

_log = logging.getLogger(__name__)

OPEN_PATHS = ("/health", "/ready")
OPEN = Door()


class NoSuchMethod(RegistryError):
    status, code = 405, 405


class Broken(RegistryError):
    status, code = 500, 500


def application(registry: Registry, door: Door = OPEN) -> ASGIApp:
    """All of it, for those who fit the door."""
    app: ASGIApp = QuickAnswers(Application(registry, door), registry)
    if not door.is_open:
        app = Access(app, door, OPEN_PATHS, rendered)
    return OwnPages(app, render=rendered)


class ServerRoutes(Answering):
    """What is told of the server itself."""

    def __init__(self, registry: Registry, door: Door) -> None:
        super().__init__(registry)
        self._door = door
        self.described: list[Operation] = []

    def operations(self) -> list[Operation]:
        return [
            operation("GET", "/", self.root, "Whether it is there."),
            operation(
                "GET", "/v1/metadata/id", self.server_id, "Which registry it is.", (), ServerId
            ),
            operation(
                "GET",
                "/v1/metadata/version",
                self.server_version,
                "Which release it is.",
                (),
                ServerVersion,
            ),
            operation(
                "GET",
                "/v1/metadata/deployment",
                self.deployment,
                "How it is deployed, as far as it is told.",
                (),
                Deployment,
            ),
            Operation("GET", "/health", self.health, "Whether it works."),
            Operation("GET", "/ready", self.ready, "Whether it reads and writes."),
            Operation(
                "GET", "/metrics", self.metrics, "For Prometheus.", answer_types=(CONTENT_TYPE,)
            ),
            Operation("GET", "/openapi.json", self.openapi, "This description."),
        ]

    async def root(self, request: Request) -> Response:
        return Call(request).answer({})

    async def server_id(self, request: Request) -> Response:
        clusters = {
            "kafka-cluster": self.registry.cluster_id,
            "schema-registry-cluster": self.registry.settings.schema_registry_group_id,
        }
        return Call(request).answer(ServerId({"path": [], "clusters": clusters}, ""))

    async def server_version(self, request: Request) -> Response:
        return Call(request).answer(ServerVersion(version("headrace"), ""))

    async def deployment(self, request: Request) -> Response:
        return Call(request).answer(Deployment([]))

    async def health(self, request: Request) -> Response:
        self._check_topic()
        return Response(b'{"status":"healthy"}', media_type=JSON)

    async def ready(self, request: Request) -> Response:
        """Reads are answered from the start; this is also about writes."""
        if self.registry.leader is None:
            raise Unavailable("no instance leads yet, so writes have to wait")
        self._check_topic()
        return Response(b'{"status":"ready"}', media_type=JSON)

    def _check_topic(self) -> None:
        if self.registry.failure is not None:
            raise Unavailable(f"the topic cannot be followed: {self.registry.failure}")

    async def metrics(self, request: Request) -> Response:
        page = "".join(render(families(self.registry)))
        return Response(page, media_type=CONTENT_TYPE)

    async def openapi(self, request: Request) -> Response:
        document = openapi(
            "Headrace schema registry",
            version("headrace"),
            self.described,
            has_tokens=self._door.tokens is not None,
            has_users=self._door.users is not None,
            error=ErrorMessage,
        )
        return Response(msgspec.json.encode(document), media_type=JSON)


def operations_of(registry: Registry, door: Door = OPEN) -> list[Operation]:
    """Everything that a registry answers, its description of itself included."""
    server = ServerRoutes(registry, door)
    server.described = [
        *SubjectRoutes(registry).operations(),
        *SchemaRoutes(registry).operations(),
        *SettingRoutes(registry).operations(),
        *server.operations(),
    ]
    return server.described


class Application:
    """Finds the operation of a request, and turns what it raises into an answer."""

    def __init__(self, registry: Registry, door: Door = OPEN) -> None:
        self._registry = registry
        self._router = Router(operations_of(registry, door))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "the server is told to speak nothing else"
        began_ns = perf_counter_ns()
        name, response = await self._answered(scope, receive, send)
        if scope["method"] == "HEAD":
            response.body = b""
        await response(scope, receive, send)
        duration_ns = perf_counter_ns() - began_ns
        self._registry.metrics.answered(name, response.status_code, duration_ns)

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> tuple[str, Response]:
        name = "none"
        try:
            target = target_of(scope["raw_path"], self._unaliased)
            match = self._router.match(target.segments)
            if match is None:
                raise NotFound("HTTP 404 Not Found")
            if scope["method"] == "OPTIONS":
                return name, Response(status_code=204, headers={"Allow": _allowed(match)})
            operation = self._operation(match, scope["method"])
            name = operation.name
            scope["path_params"] = match.parameters
            scope[CONTEXT_PREFIX] = target.context_prefix
            return name, await operation.endpoint(Request(scope, receive, send))
        except HttpError as error:
            if error.status == 500:
                _log.warning("%s %s: %s", scope["method"], scope["path"], error)
            return name, rendered(error)
        except (HTTPException, ClientDisconnect) as error:
            return name, rendered(Broken(str(error)))
        except Exception:
            _log.exception("%s %s failed", scope["method"], scope["path"])
            return name, rendered(Broken("something is wrong on our side; the log says what"))

    def _operation(self, match: Match, method: str) -> Operation:
        found = match.operations.get("GET" if method == "HEAD" else method)
        if found is None:
            raise NoSuchMethod("HTTP 405 Method Not Allowed", headers={"Allow": _allowed(match)})
        return found

    def _unaliased(self, subject: str) -> str:
        is_one = subject and not subject.startswith(EVERY_CONTEXT)
        return self._registry.state.unaliased(subject) if is_one else subject


def _allowed(match: Match) -> str:
    methods = set(match.operations) | {"OPTIONS"}
    if "GET" in methods:
        methods.add("HEAD")
    return ", ".join(sorted(methods))
