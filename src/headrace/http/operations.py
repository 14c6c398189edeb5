"""A route and its description in one: the table of a product's operations is its OpenAPI page.

Types of bodies and answers are msgspec structs; their schemas are msgspec's.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from headrace.http.errors import JSON, ErrorBody
from headrace.http.metrics import OPERATION_KEY

Endpoint = Callable[[Request], Awaitable[Response]]

_NO_CONTENT = 204
_REFERENCES = "#/components/schemas/{name}"
_SLASH = "\udc2f"
"""Stands for a slash within a part of a path; nothing that a client sends is decoded to it."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A part of the path, or of the query after the question mark."""

    name: str
    description: str
    place: str = "query"
    type: str = "string"


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path: who answers it, and what a reader has to know."""

    method: str
    path: str
    endpoint: Endpoint
    summary: str
    parameters: Sequence[Parameter] = ()
    body: Any = None
    """The type of the body, where there is one."""
    body_types: Sequence[str] = (JSON,)
    answer: Any = None
    """The type of the answer, where it has one."""
    answer_types: Sequence[str] = (JSON,)
    status: int = 200
    """Of an answer that is no error; 204 has no body."""
    errors: Mapping[int, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(getattr(self.endpoint, "__name__", self.summary))

    @property
    def long_name(self) -> str:
        """A name that no other operation has, as none has the same method and path."""
        words = re.findall(r"[a-zA-Z0-9]+|(?<=/)-(?=/)", self.path)
        return "_".join((self.method.lower(), *("all" if one == "-" else one for one in words)))


class OperationRoute(Route):
    """A route that leaves word which operation a request was, for those that count.

    Names of groups and transactions may hold slashes, written `%2F`, so a path with such is cut
    into its parts before these are decoded.
    """

    def __init__(self, operation: Operation) -> None:
        super().__init__(operation.path, operation.endpoint, methods=[operation.method])
        self._label = f"{operation.method} {operation.path}"

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        raw_path = scope.get("raw_path") or b""
        if b"%2" not in raw_path or b"%2f" not in raw_path.lower():
            return super().matches(scope)
        parts = [unquote(part) for part in raw_path.decode("latin-1").split("/")]
        path = "/".join(part.replace("/", _SLASH) for part in parts)
        match, found = super().matches({**scope, "path": path})
        if match is not Match.NONE:
            values = found["path_params"].items()
            found["path_params"] = {name: value.replace(_SLASH, "/") for name, value in values}
        return match, found

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[OPERATION_KEY] = self._label
        await super().handle(scope, receive, send)


def routes(operations: Iterable[Operation]) -> list[Route]:
    return [OperationRoute(one) for one in operations]


def openapi(
    title: str,
    version: str,
    operations: Sequence[Operation],
    *,
    error: type = ErrorBody,
    has_tokens: bool = False,
    has_users: bool = False,
) -> dict[str, Any]:
    """The OpenAPI 3.1 document of these operations, whose errors have the given shape."""
    types = [type for one in operations for type in (one.body, one.answer) if type]
    found, components = msgspec.json.schema_components([error, *types], ref_template=_REFERENCES)
    error_schema, *schemas = found
    schema_of = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    names = Counter(one.name for one in operations)
    for one in operations:
        entry = _entry(one, schema_of, error_schema)
        entry["operationId"] = one.name if names[one.name] == 1 else one.long_name
        paths.setdefault(one.path, {})[one.method.lower()] = entry
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {"schemas": components},
    }
    schemes = {
        **({"token": {"type": "http", "scheme": "bearer"}} if has_tokens else {}),
        **({"user": {"type": "http", "scheme": "basic"}} if has_users else {}),
    }
    if schemes:
        document["components"]["securitySchemes"] = schemes
        document["security"] = [{name: []} for name in schemes]
    return document


def _entry(
    operation: Operation, schema_of: Mapping[Any, Any], error_schema: Mapping[str, Any]
) -> dict[str, Any]:
    answer = {"schema": schema_of[operation.answer]} if operation.answer else {}
    entry: dict[str, Any] = {
        "summary": operation.summary,
        "parameters": [_parameter(parameter) for parameter in operation.parameters],
        "responses": {
            str(operation.status): {
                "description": "Done.",
                "content": {
                    type: answer if _is_json(type) else {} for type in operation.answer_types
                },
            }
        },
    }
    if operation.status == _NO_CONTENT:
        del entry["responses"][str(_NO_CONTENT)]["content"]
    for status, description in operation.errors.items():
        content = {JSON: {"schema": error_schema}}
        entry["responses"][str(status)] = {"description": description, "content": content}
    if operation.body is not None:
        content = {
            type: {"schema": schema_of[operation.body] if _is_json(type) else {"type": "string"}}
            for type in operation.body_types
        }
        entry["requestBody"] = {"required": True, "content": content}
    return entry


def _is_json(media_type: str) -> bool:
    return media_type == JSON or media_type.endswith("+json")


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.place == "path",
        "description": parameter.description,
        "schema": {"type": parameter.type},
    }
