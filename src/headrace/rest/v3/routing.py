"""Operations of version 3: methods take values and return values, whose types are described.

A method receives the `Context` of its request and, if it declares one, the body. It returns a
resource, a list of resources, another value, or nothing.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial, wraps
from typing import Any, TypeVar, get_args, get_origin

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.admin import Admin
from headrace.http.bodies import media_type, read_body
from headrace.http.errors import JSON, UnsupportedMediaType
from headrace.http.operations import Method, Operation, Parameter, marked
from headrace.rest.clients import Clients
from headrace.rest.errors import RestError, invalid_payload
from headrace.rest.numbers import whole
from headrace.rest.payloads import decoded_body, invalid_body
from headrace.rest.routing import Routes, path_parameters
from headrace.rest.service import Service
from headrace.rest.v3.resources import KINDS, Collection, Links, Resource, shown_type

T = TypeVar("T")

CLUSTER = "/v3/clusters/{cluster_id}"
TOPIC = f"{CLUSTER}/topics/{{topic_name}}"
PARTITION = f"{TOPIC}/partitions/{{partition_id}}"
REJECTED = {400: "The broker rejects it.", 422: "The body is invalid."}

_MISSING = {404: "Not found."}
_BODY_BYTES_MAX = 4 << 20


class Context:
    """A request for one cluster: its parameters, its caller's clients, and addresses."""

    def __init__(self, clients: Clients, request: Request, links: Links) -> None:
        self._clients = clients
        self._path = request.path_params
        self.query: QueryParams = request.query_params
        self.links = links

    @classmethod
    async def of(cls, service: Service, request: Request) -> "Context":
        clients = service.clients(request)
        cluster_id = await checked_cluster(clients, request)
        return cls(clients, request, Links(request, cluster_id, service.settings.host_name))

    async def ask(self, question: Callable[[Admin], T]) -> T:
        return await self._clients.admin.run(question)

    @property
    def topic(self) -> str:
        return self.text("topic_name")

    @property
    def group(self) -> str:
        return self.text("consumer_group_id")

    def has(self, name: str) -> bool:
        return name in self._path

    def text(self, name: str) -> str:
        return str(self._path[name])

    def number(self, name: str) -> int:
        """Return a number of the path; any other text is not found."""
        text = self.text(name)
        found = whole(text)
        if found is None:
            raise not_found(f"HTTP 404 Not Found: {text[:40]!r} is not a valid {name}")
        return found

    def collection(self, kind: str, data: Iterable[Resource], path: str) -> Collection[Any]:
        """Return a list whose address is the path of the request."""
        address = path.removeprefix(CLUSTER).removeprefix("/")
        return self.links.collection(kind, data, self.links.url(address, self._path))


Function = Callable[..., Awaitable[Any]]


def route(
    method: str,
    path: str,
    summary: str,
    *query: Parameter,
    answer: Any = None,
    errors: Mapping[int, str] | None = None,
    status: int = 200,
) -> Callable[[Method], Method]:
    """Declare an operation; body and answer have the types that the method declares.

    Operations may share a method; then each names the type of its answer.
    """

    def mark(function: Method) -> Method:
        signature = inspect.signature(function)
        body = [one.annotation for one in signature.parameters.values()][2:]
        found = answer or signature.return_annotation
        code = 204 if found is None and status == 200 else status
        operation = Operation(
            method,
            path,
            _endpoint(function, path, body, found, code),
            summary,
            (*path_parameters(path), *query),
            body=body[0] if body else None,
            answer=_described(found),
            errors={**_MISSING, **(errors or {})},
            status=code,
        )
        return marked(function, operation)

    return mark


get = partial(route, "GET")
post = partial(route, "POST")
put = partial(route, "PUT")
delete = partial(route, "DELETE")


def _endpoint(function: Function, path: str, body: list[Any], found: Any, status: int) -> Any:
    listed = KINDS.get(get_args(found)[0]) if get_origin(found) is list else None

    @wraps(function)
    async def endpoint(routes: Routes, request: Request) -> Response:
        context = await Context.of(routes.service, request)
        given = [await json_body(request, type) for type in body]
        value = await function(routes, context, *given)
        if isinstance(value, Response):
            return value
        if value is None:
            return Response(status_code=status)
        if isinstance(value, Resource):
            value = context.links.shown(value)
        elif listed is not None and isinstance(value, list):
            value = context.collection(f"{listed.name}List", value, path)
        return json_answer(value, status)

    return endpoint


def _described(found: Any) -> Any:
    """Return the type of an answer for the description of its operation."""
    if found is None or found is Response:
        return None
    if get_origin(found) is list:
        (item,) = map(shown_type, get_args(found))
        return Collection[item]  # type: ignore[valid-type]  # A computed type.
    is_resource = isinstance(found, type) and issubclass(found, Resource)
    return shown_type(found) if is_resource else found


async def checked_cluster(clients: Clients, request: Request) -> str:
    """Return the id of the proxy's cluster; a path with another id is not found."""
    cluster_id = await clients.cluster_id()
    given = request.path_params.get("cluster_id", cluster_id)
    if given != cluster_id:
        raise not_found(f"Cluster {given} cannot be found.")
    return cluster_id


def json_answer(value: Any, status: int = 200, location: str | None = None) -> Response:
    headers = None if location is None else {"Location": location}
    return Response(msgspec.json.encode(value), status, headers, JSON)


def not_found(message: str) -> RestError:
    return RestError(404, 404, message)


async def json_body(request: Request, type: type[T]) -> T:
    """Decode the body of a request; a missing or invalid body is an error."""
    check_json(request)
    body = await read_body(request, _BODY_BYTES_MAX)
    if not body.strip():
        raise invalid_payload("Request body is empty. Data is required.")
    return decoded_body(body, msgspec.json.Decoder(type), invalid_body)


def check_json(request: Request) -> None:
    given = media_type(request)
    if given and given != JSON:
        raise UnsupportedMediaType(f"HTTP 415 Unsupported Media Type: send {JSON}, not {given}")
