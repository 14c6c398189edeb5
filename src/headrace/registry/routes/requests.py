"""A request as the operations see it: parameters by type, the body by type, the answer's type."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.http.bodies import decode_json, media_type, read_body
from headrace.http.errors import JSON, NotAcceptable, NotFound, UnsupportedMediaType
from headrace.http.negotiation import choose
from headrace.registry.deciding.candidates import Candidate
from headrace.registry.errors import ANSWER_TYPE, InvalidVersion, UnprocessableBody
from headrace.registry.leadership.forwarding import FORWARDED, Forwarded, forwardable_headers
from headrace.registry.routes.routing import with_context
from headrace.serdes.contracts import Metadata, Reference, RuleSet
from headrace.serdes.schema_records import AVRO
from headrace.serdes.subject_names import is_default_context, normalized

ANSWER_TYPES = (ANSWER_TYPE, "application/vnd.schemaregistry+json", JSON)
BODY_TYPES = (*ANSWER_TYPES, "application/octet-stream")
CONTEXT_PREFIX = "headrace.registry.context"
"""Where in the scope of a request the context of its path stands."""

_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")
_INT_MAX = (1 << 31) - 1
_LATEST = "latest"

T = TypeVar("T")


class SchemaBody(msgspec.Struct, frozen=True):
    """A schema as clients send it."""

    version: int | None = None
    id: int | None = None
    schema_type: str | None = msgspec.field(default=None, name="schemaType")
    references: list[Reference] | None = None
    metadata: Metadata | None = None
    rules: RuleSet | None = msgspec.field(default=None, name="ruleSet")
    schema: str | None = None

    def candidate(self, subject: str) -> Candidate:
        return Candidate(
            subject=subject,
            text=self.schema or "",
            type=self.schema_type or AVRO,
            references=tuple(self.references or ()),
            metadata=None if self.metadata is None else self.metadata.sorted(),
            rules=None if self.rules is None else self.rules.sorted(),
            version=0 if self.version is None else self.version,
            id=-1 if self.id is None or self.id < 0 else self.id,
        )


class Call:
    """One request."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._body: bytes | None = None

    # --- parameters ---------------------------------------------------------------------------

    @property
    def path(self) -> Mapping[str, str]:
        return self.request.path_params

    @property
    def subject(self) -> str:
        return normalized(self.path["subject"])

    @property
    def scope(self) -> str | None:
        """The subject or context of a setting; None for all."""
        subject = self.path.get("subject")
        return None if subject is None or is_default_context(subject) else normalized(subject)

    @property
    def version(self) -> int:
        """A version's number; `latest` is -1, and so is -1 itself."""
        text = self.path["version"]
        if text.strip().lower() == _LATEST:
            return -1
        number = _whole(text.strip())
        if number is None or (number <= 0 and number != -1):
            raise InvalidVersion(text)
        return number

    @property
    def id(self) -> int:
        number = _whole(self.path["id"])
        if number is None:
            raise NotFound("HTTP 404 Not Found")
        return number

    def flag(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    def text(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)

    def texts(self, name: str) -> list[str]:
        return self.request.query_params.getlist(name)

    def number(self, name: str, default: int) -> int:
        text = self.request.query_params.get(name)
        number = default if text is None else _whole(text)
        if number is None:
            raise NotFound(f"HTTP 404 Not Found: {name} is not a number")
        return number

    def contextual(self, name: str, default: str | None = "") -> str | None:
        """A subject in the query, in the context of the path."""
        text = self.request.query_params.get(name)
        prefix = self.request.scope.get(CONTEXT_PREFIX)
        if text is None and prefix is None:
            return default
        return with_context(prefix or "", text or "")

    def page(self, items: list[T], limit_default: int, limit_max: int) -> list[T]:
        """The part of a list that was asked for."""
        offset = max(0, self.number("offset", 0))
        limit = self.number("limit", -1)
        if not 0 < limit <= limit_max:
            limit = limit_default
        return items[offset : offset + limit]

    # --- bodies -------------------------------------------------------------------------------

    async def body(self, type: type[T], bytes_max: int) -> T:
        kind = media_type(self.request)
        if kind and kind not in BODY_TYPES:
            raise UnsupportedMediaType(
                f"HTTP 415 Unsupported Media Type: send {ANSWER_TYPE} or {JSON}, not {kind}"
            )
        self._body = await read_body(self.request, bytes_max)
        if not self._body.strip() or self._body.strip() == b"null":
            raise UnprocessableBody("the body is empty; a JSON object must not be null")
        return decode_json(self._body, type)

    def forwarded(self) -> Forwarded:
        """The request once more, for the leader."""
        scope = self.request.scope
        target = scope["raw_path"].decode("latin-1")
        if scope["query_string"]:
            target += "?" + scope["query_string"].decode("latin-1")
        headers = forwardable_headers(self.request.headers)
        return Forwarded(self.request.method, target, headers, self._body or b"")

    @property
    def is_forwarded(self) -> bool:
        return FORWARDED in self.request.headers

    # --- answers ------------------------------------------------------------------------------

    def answer(self, value: Any, status: int = 200) -> Response:
        return Response(msgspec.json.encode(value), status, media_type=self.answer_type())

    def answer_text(self, text: str) -> Response:
        """A schema as it is, not as a string of JSON."""
        body = text.encode("utf-8", "surrogatepass")
        return Response(body, media_type=self.answer_type())

    def answer_type(self) -> str:
        chosen = choose(self.request.headers.get("accept", ""), ANSWER_TYPES)
        if chosen is None:
            raise NotAcceptable("HTTP 406 Not Acceptable: answers are " + ", ".join(ANSWER_TYPES))
        return chosen


def _whole(text: str) -> int | None:
    if not _NUMBER.fullmatch(text):
        return None
    number = int(text)
    return number if -_INT_MAX - 1 <= number <= _INT_MAX else None
