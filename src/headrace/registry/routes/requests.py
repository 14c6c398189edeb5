"""The request of an operation: its path, parameters and body by type, and the answer's type."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.http import errors
from headrace.http.bodies import decode_json, media_type, read_body
from headrace.http.negotiation import choose
from headrace.http.routing import path_segments
from headrace.registry.deciding.candidates import Candidate
from headrace.registry.errors import ANSWER_TYPE, InvalidVersion, UnprocessableBody
from headrace.registry.leadership.forwarding import FORWARDED, Forwarded, forwardable_headers
from headrace.serdes.contracts import Metadata, Reference, RuleSet
from headrace.serdes.schema_records import AVRO
from headrace.serdes.subject_names import (
    EVERY_CONTEXT,
    is_default_context,
    normalized,
    normalized_context,
)

ANSWER_TYPES = (ANSWER_TYPE, "application/vnd.schemaregistry+json", errors.JSON)
BODY_TYPES = (*ANSWER_TYPES, "application/octet-stream")
CONTEXT_PREFIX = "headrace.registry.context"
"""In the scope of a request: the context of its path."""

_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")
_INT_MAX = (1 << 31) - 1
_LATEST = "latest"
_SUBJECT_FOLLOWS = "subjects"
_SETTINGS = ("config", "mode")

T = TypeVar("T")


class SchemaBody(msgspec.Struct, frozen=True):
    """A schema in a request."""

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
    """A request."""

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
        """The version's number; `latest` is -1, as is -1 itself."""
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
            raise errors.NotFound("HTTP 404 Not Found")
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
            raise errors.NotFound(f"HTTP 404 Not Found: {name} is not a number")
        return number

    def contextual(self, name: str, default: str | None = "") -> str | None:
        """Return a subject of the query, in the context of the path."""
        text = self.request.query_params.get(name)
        prefix = self.request.scope.get(CONTEXT_PREFIX)
        if text is None and prefix is None:
            return default
        return with_context(prefix or "", text or "")

    def page(self, items: list[T], limit_default: int, limit_max: int) -> list[T]:
        """Return the requested part of a list."""
        offset = max(0, self.number("offset", 0))
        limit = self.number("limit", -1)
        if not 0 < limit <= limit_max:
            limit = limit_default
        return items[offset : offset + limit]

    # --- bodies -------------------------------------------------------------------------------

    async def body(self, type: type[T], bytes_max: int) -> T:
        kind = media_type(self.request)
        if kind and kind not in BODY_TYPES:
            raise errors.UnsupportedMediaType(
                f"HTTP 415 Unsupported Media Type: send {ANSWER_TYPE} or {errors.JSON}, not {kind}"
            )
        self._body = await read_body(self.request, bytes_max)
        if not self._body.strip() or self._body.strip() == b"null":
            raise UnprocessableBody("the body must be a JSON object, not empty or null")
        return decode_json(self._body, type)

    def forwarded(self) -> Forwarded:
        """Return the request as it is sent to the leader."""
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
        """Answer with a schema itself instead of a JSON string."""
        body = text.encode("utf-8", "surrogatepass")
        return Response(body, media_type=self.answer_type())

    def answer_type(self) -> str:
        chosen = choose(self.request.headers.get("accept", ""), ANSWER_TYPES)
        if chosen is None:
            raise errors.NotAcceptable(
                "HTTP 406 Not Acceptable: answers are " + ", ".join(ANSWER_TYPES)
            )
        return chosen


def _whole(text: str) -> int | None:
    if not _NUMBER.fullmatch(text):
        return None
    number = int(text)
    return number if -_INT_MAX - 1 <= number <= _INT_MAX else None


class Target(NamedTuple):
    """A path without its context, and the prefix that the context gives to subjects.

    The default context has an empty prefix: `/contexts/./subjects` lists that context alone, but a
    path without a context, and so without a prefix, lists all.
    """

    segments: Sequence[str]
    context_prefix: str | None = None


def target_of(raw_path: bytes, alias_of: Callable[[str], str]) -> Target:
    """Split a path, and apply its context and aliases to its subject.

    A path under `/contexts/{context}` is the same path for subjects of that context.
    """
    target = _contextual(path_segments(raw_path))
    segments = list(target.segments)
    for place, segment in enumerate(segments[1:], 1):
        if segments[place - 1] == _SUBJECT_FOLLOWS:
            segments[place] = alias_of(segment)
            break
    return Target(segments, target.context_prefix)


def with_context(prefix: str, text: str) -> str:
    """Qualify a subject, or its beginning, by the context of the path unless it has its own."""
    is_qualified = text.startswith((":.", EVERY_CONTEXT))
    return text if is_qualified else prefix + text


def _contextual(segments: list[str]) -> Target:
    if segments[0] != "contexts" or len(segments) == 1:
        return Target(segments)
    try:
        prefix = normalized_context(segments[1])
    except ValueError as error:
        raise errors.BadRequest(str(error)) from error
    rest = segments[2:]
    if not rest:
        return Target(["contexts", prefix], prefix)
    if rest[0] in _SETTINGS and len(rest) == 1:
        return Target([*rest, prefix] if prefix else rest, prefix)
    place = 1 if rest[0] in _SETTINGS else _place_of_subject(rest)
    if 0 < place < len(rest):
        rest[place] = with_context(prefix, rest[place])
    return Target(rest, prefix)


def _place_of_subject(segments: Sequence[str]) -> int:
    return segments.index(_SUBJECT_FOLLOWS) + 1 if _SUBJECT_FOLLOWS in segments else 0
