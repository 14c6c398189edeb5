"""Shared parts of the registry's operations: parameters, refusals, and answers to writes."""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from headrace.http import operations
from headrace.http.operations import Endpoint, Method, Operation, Parameter
from headrace.registry.deciding.candidates import parsed_entry
from headrace.registry.deciding.decisions import Decision
from headrace.registry.errors import InvalidSchemaGiven
from headrace.registry.leadership.forwarding import WRITTEN_AT, Answer
from headrace.registry.model.state import Entry, State
from headrace.registry.routes.requests import ANSWER_TYPES, BODY_TYPES, Call, SchemaBody
from headrace.registry.service import Registry
from headrace.serdes.schemas import InvalidSchema, ParsedSchema

T = TypeVar("T")

UNLIMITED = (1 << 31) - 1

DELETED = Parameter("deleted", "Include deleted ones.", type="boolean")
DELETED_ONLY = Parameter("deletedOnly", "Only deleted ones.", type="boolean")
NORMALIZE = Parameter("normalize", "Compare and store the normalized schema.", type="boolean")
FORMAT = Parameter("format", "Another form of the schema, such as resolved or serialized.")
REFERENCE_FORMAT = Parameter("referenceFormat", "`qualified` names the contexts of references.")
PAGE = (
    Parameter("offset", "The number of items to skip.", type="integer"),
    Parameter("limit", "The maximum number of items.", type="integer"),
)

_PATH_PARAMETERS = {
    one.name: one
    for one in (
        Parameter("subject", "The subject, as orders-value or :.staging:orders-value.", "path"),
        Parameter("version", "A number, or latest.", "path"),
        Parameter("id", "The id of the schema.", "path", "integer"),
        Parameter("guid", "The guid of the schema, the same in every registry.", "path"),
        Parameter("context", "The context, as .staging or :.staging:.", "path"),
    )
}

_NOT_FOUND = {404: "40401 no such subject, 40402 version, 40403 schema; 40404 to 40407 deleted."}
_INVALID = {422: "42201 invalid schema, 42202 invalid version, ...; 42205, 42206 not permitted."}
_CONFLICT = {409: "The schema is incompatible with an earlier one."}
_NOT_WRITTEN = {500: "50001 to 50004: Kafka or the leader did not answer in time; try again."}
_READING = {**_NOT_FOUND, **_INVALID}
_WRITING = {**_READING, **_CONFLICT, **_NOT_WRITTEN}


def operation(
    place: str, *parameters: Parameter, answer: Any = None, body: type | None = None
) -> Callable[[Method], Method]:
    """Mark an endpoint that takes a `Call`, with the registry's media types."""
    in_path = (_PATH_PARAMETERS[name] for name in re.findall(r"{(\w+)}", place))
    return operations.operation(
        place,
        *in_path,
        *parameters,
        answer=answer,
        errors=_READING if place.startswith("GET") else _WRITING,
        body=body,
        body_types=BODY_TYPES,
        answer_types=ANSWER_TYPES,
    )


class Routes:
    """A group of endpoints, and their shared parts."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    def operations(self) -> list[Operation]:
        return operations.operations_of(self, _with_call)

    @property
    def state(self) -> State:
        return self.registry.state

    @property
    def limits(self) -> tuple[int, int]:
        """The default and the maximum number of schemas in an answer."""
        settings = self.registry.settings
        return settings.schema_search_default_limit, settings.schema_search_max_limit

    async def body(self, call: Call, type: type[T]) -> T:
        return await call.body(type, self.registry.settings.max_request_body_size)

    async def schema_body(self, call: Call) -> SchemaBody:
        return await self.body(call, SchemaBody)

    async def written(
        self, call: Call, decide: Callable[[], Decision[T]], show: Callable[[T], Response]
    ) -> Response:
        """Write, here or at the leader, and answer with the outcome."""
        call.answer_type()  # Refuses an unacceptable type before anything is written.
        result = await self.registry.write(decide, call.forwarded(), is_forwarded=call.is_forwarded)
        if isinstance(result, Answer):
            return Response(result.body, result.status, media_type=result.content_type or None)
        response = show(result)
        if call.is_forwarded:
            response.headers[WRITTEN_AT] = str(self.registry.store.next_offset - 1)
        return response

    def formatted(self, call: Call, entry: Entry) -> str | None:
        """Return the schema in the requested form; None without one."""
        if not call.text("format").strip():
            return None
        return self.in_format(call, parsed_entry(self.state, entry))

    def in_format(self, call: Call, parsed: ParsedSchema) -> str:
        try:
            return parsed.formatted(call.text("format"))
        except InvalidSchema as error:
            raise InvalidSchemaGiven(f"the schema has no such form: {error}") from error


def _with_call(method: Callable[[Call], Any]) -> Endpoint:
    @wraps(method)
    async def endpoint(request: Request) -> Response:
        response: Response = await method(Call(request))
        return response

    return endpoint
