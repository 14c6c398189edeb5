"""What the endpoints of version 3 share: JSON bodies, parts of paths, whose cluster is meant."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.admin import Admin
from headrace.http.bodies import media_type, read_body
from headrace.http.errors import JSON, UnsupportedMediaType
from headrace.http.operations import Parameter
from headrace.rest.clients import Clients
from headrace.rest.errors import RestError, bad_request, invalid_payload, unprocessable
from headrace.rest.numbers import whole
from headrace.rest.service import Service
from headrace.rest.v3.resources import Links

T = TypeVar("T")

CLUSTER = Parameter("cluster_id", "The cluster.", "path")
TOPIC = Parameter("topic_name", "The topic.", "path")
PARTITION = Parameter("partition_id", "The partition.", "path", "integer")
BROKER = Parameter("broker_id", "The broker.", "path", "integer")
GROUP = Parameter("consumer_group_id", "The consumer group.", "path")
CONSUMER = Parameter("consumer_id", "The member of the group.", "path")
NAME = Parameter("name", "The setting.", "path")

MISSING = {404: "There is no such thing."}

_BODY_BYTES_MAX = 4 << 20


class Context:
    """A request for one cluster: who asks it, and how its things are addressed."""

    def __init__(self, service: Service, request: Request, links: Links) -> None:
        self._service = service
        self._request = request
        self.links = links
        self.cluster_id = links.cluster_id

    @classmethod
    async def of(cls, service: Service, request: Request) -> "Context":
        cluster_id = await asked_cluster(service.clients(request), request)
        return cls(service, request, Links(request, cluster_id, service.settings.host_name))

    async def ask(self, question: Callable[[Admin], T]) -> T:
        return await self._service.clients(self._request).admin.run(question)

    @property
    def topic(self) -> str:
        return str(self._request.path_params["topic_name"])

    @property
    def group(self) -> str:
        return str(self._request.path_params["consumer_group_id"])

    def number(self, name: str) -> int:
        """A number in the path; what is none names nothing that could be found."""
        text = self._request.path_params[name]
        found = whole(text)
        if found is None:
            raise not_found(f"HTTP 404 Not Found: {text[:40]!r} is no {name}")
        return found


async def asked_cluster(clients: Clients, request: Request) -> str:
    """The id of the cluster that this proxy serves; whatever is asked must be of it."""
    cluster_id = await clients.cluster_id()
    asked = request.path_params.get("cluster_id", cluster_id)
    if asked != cluster_id:
        raise not_found(f"Cluster {asked} cannot be found.")
    return cluster_id


def answer(value: Any, status: int = 200, location: str | None = None) -> Response:
    headers = None if location is None else {"Location": location}
    return Response(msgspec.json.encode(value), status, headers, JSON)


def nothing() -> Response:
    return Response(status_code=204)


def not_found(message: str) -> RestError:
    return RestError(404, 404, message)


async def json_body(request: Request, type: type[T]) -> T:
    """The body of a request that must have one."""
    check_json(request)
    body = await read_body(request, _BODY_BYTES_MAX)
    if not body.strip():
        raise invalid_payload("Request body is empty. Data is required.")
    try:
        return msgspec.json.decode(body, type=type)
    except msgspec.ValidationError as error:
        raise unprocessable(f"the body is not what it should be: {error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"the body is no JSON: {error}") from None


def check_json(request: Request) -> None:
    given = media_type(request)
    if given and given != JSON:
        raise UnsupportedMediaType(f"HTTP 415 Unsupported Media Type: send {JSON}, not {given}")
