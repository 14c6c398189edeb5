"""Routes and their descriptions in one place: a product's operations are its OpenAPI document.

Types of bodies and answers are msgspec structs; msgspec writes their schemas.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MethodType
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.http.access import Role
from headrace.http.errors import JSON, ErrorBody

Endpoint = Callable[[Request], Awaitable[Response]]
Method = TypeVar("Method", bound=Callable[..., Awaitable[Any]])

_MARKS = "__operations__"
_NO_CONTENT = 204
_REFERENCES = "#/components/schemas/{name}"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A variable of the path or of the query string."""

    name: str
    description: str
    place: str = "query"
    type: str = "string"


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path: its endpoint and its description."""

    method: str
    path: str
    endpoint: Endpoint
    summary: str
    parameters: Sequence[Parameter] = ()
    body: Any = None
    """The type of the request's body, if there is one."""
    body_types: Sequence[str] = (JSON,)
    answer: Any = None
    """The type of the answer's body, if there is one."""
    answer_types: Sequence[str] = (JSON,)
    status: int = 200
    """The status of success; 204 has no body."""
    errors: Mapping[int, str] = field(default_factory=dict)
    role: Role = Role.VIEWER
    """The least role that may use it, in products that have roles."""
    label: str | None = None
    """The operation in metrics: METHOD and path if None, not counted if empty."""
    is_described: bool = True
    """False for operations that the OpenAPI document leaves out."""

    @property
    def name(self) -> str:
        return str(getattr(self.endpoint, "__name__", self.summary))

    @property
    def long_name(self) -> str:
        """A unique name, made of the method and the path."""
        words = re.findall(r"[a-zA-Z0-9]+|(?<=/)-(?=/)", self.path)
        return "_".join((self.method.lower(), *("all" if one == "-" else one for one in words)))

    @property
    def metrics_label(self) -> str:
        return f"{self.method} {self.path}" if self.label is None else self.label


def operation(
    place: str, *parameters: Parameter, summary: str = "", **fields: Any
) -> Callable[[Method], Method]:
    """Mark a method of a class as an endpoint, as in `@operation("GET /topics/{topic}", TOPIC)`.

    The docstring is the summary unless one is given; `fields` are further fields of `Operation`.
    """
    method, _, path = place.partition(" ")

    def mark(endpoint: Method) -> Method:
        text = summary or " ".join((endpoint.__doc__ or "").split())
        return marked(endpoint, Operation(method, path, endpoint, text, parameters, **fields))

    return mark


def marked(method: Method, described: Operation) -> Method:
    """Add an operation to a method of a class; its endpoint is a function of object and request."""
    setattr(method, _MARKS, (described, *getattr(method, _MARKS, ())))
    return method


def operations_of(
    owner: object, bind: Callable[[Any], Endpoint] = lambda method: method
) -> list[Operation]:
    """Return the operations of an object whose class marks methods, in their order."""
    return [
        replace(described, endpoint=bind(MethodType(described.endpoint, owner)))
        for method in vars(type(owner)).values()
        for described in getattr(method, _MARKS, ())
    ]


def openapi(
    title: str,
    version: str,
    operations: Iterable[Operation],
    *,
    error: type = ErrorBody,
    has_tokens: bool = False,
    has_users: bool = False,
) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of operations whose errors have the given type."""
    described = [one for one in operations if one.is_described]
    types = [type for one in described for type in (one.body, one.answer) if type]
    found, components = msgspec.json.schema_components([error, *types], ref_template=_REFERENCES)
    error_schema, *schemas = found
    schema_of = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    names = Counter(one.name for one in described)
    for one in described:
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
    success: dict[str, Any] = {"description": "Done."}
    if operation.status != _NO_CONTENT:
        types = operation.answer_types
        success["content"] = {type: answer if _is_json(type) else {} for type in types}
    entry: dict[str, Any] = {
        "summary": operation.summary,
        "parameters": [_parameter(parameter) for parameter in operation.parameters],
        "responses": {str(operation.status): success},
    }
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
