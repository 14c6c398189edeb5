"""What the operations of a registry share: parameters, refusals, and how a write is answered."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from starlette.responses import Response

from headrace.http.operations import Endpoint, Operation, Parameter
from headrace.registry.deciding.candidates import parsed_entry
from headrace.registry.deciding.decisions import Decision
from headrace.registry.errors import InvalidSchemaGiven
from headrace.registry.leadership.forwarding import WRITTEN_AT, Answer
from headrace.registry.model.state import Entry, State
from headrace.registry.routes.requests import ANSWER_TYPES, BODY_TYPES, Call, SchemaBody
from headrace.registry.service import Registry
from headrace.serdes.schemas import InvalidSchema, ParsedSchema

T = TypeVar("T")

ALL = (1 << 31) - 1
"""No limit."""

SUBJECT = Parameter("subject", "The subject, as orders-value or :.staging:orders-value.", "path")
VERSION = Parameter("version", "A number, or latest.", "path")
DELETED = Parameter("deleted", "Those that were deleted, too.", type="boolean")
DELETED_ONLY = Parameter("deletedOnly", "Only those that were deleted.", type="boolean")
NORMALIZE = Parameter("normalize", "Compare and store what the schema means.", type="boolean")
FORMAT = Parameter("format", "Another form of the schema, as resolved or serialized.")
REFERENCE_FORMAT = Parameter("referenceFormat", "`qualified` names the contexts of references.")
OFFSET = Parameter("offset", "How many to skip.", type="integer")
LIMIT = Parameter("limit", "How many at most.", type="integer")

NOT_FOUND = {404: "40401 no such subject, 40402 version, 40403 schema; 40404 to 40407 deleted."}
INVALID = {422: "42201 the schema, 42202 the version, ... is wrong; 42205, 42206 not permitted."}
CONFLICT = {409: "The schema is incompatible with an earlier one."}
NOT_WRITTEN = {500: "50001 to 50004: Kafka or the leader did not answer in time; try again."}


def operation(
    method: str,
    path: str,
    endpoint: Endpoint,
    summary: str,
    parameters: Sequence[Parameter] = (),
    answer: Any = None,
    errors: Mapping[int, str] | None = None,
    body: type | None = None,
) -> Operation:
    return Operation(
        method,
        path,
        endpoint,
        summary,
        parameters=parameters,
        body=body,
        body_types=BODY_TYPES,
        answer=answer,
        answer_types=ANSWER_TYPES,
        errors=errors or {},
    )


class Answering:
    """What endpoints have at hand."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    @property
    def state(self) -> State:
        return self.registry.state

    @property
    def limits(self) -> tuple[int, int]:
        """How many schemas are answered at once: by default, and at most."""
        settings = self.registry.settings
        return settings.schema_search_default_limit, settings.schema_search_max_limit

    async def schema_body(self, call: Call) -> SchemaBody:
        return await call.body(SchemaBody, self.registry.settings.max_request_body_size)

    async def written(
        self, call: Call, decide: Callable[[], Decision[T]], show: Callable[[T], Response]
    ) -> Response:
        """Write, here or at the leader, and show what came of it."""
        call.answer_type()  # Refused before anything is written.
        result = await self.registry.write(decide, call.forwarded(), is_forwarded=call.is_forwarded)
        if isinstance(result, Answer):
            return Response(result.body, result.status, media_type=result.content_type or None)
        response = show(result)
        if call.is_forwarded:
            response.headers[WRITTEN_AT] = str(self.registry.store.next_offset - 1)
        return response

    def formatted(self, call: Call, entry: Entry) -> str | None:
        """The schema in the form that was asked for, if one was."""
        if not call.text("format").strip():
            return None
        return self.in_format(call, parsed_entry(self.state, self.registry.types, entry))

    def in_format(self, call: Call, parsed: ParsedSchema) -> str:
        try:
            return parsed.formatted(call.text("format"))
        except InvalidSchema as error:
            raise InvalidSchemaGiven(f"the schema has no such form: {error}") from error
