"""Formats of keys and values in requests and answers, and their media types."""

from enum import StrEnum

from starlette.requests import Request

from headrace.http.bodies import media_type
from headrace.http.errors import NotAcceptable, UnsupportedMediaType
from headrace.http.negotiation import choose

V2_JSON = "application/vnd.kafka.v2+json"
PLAIN_JSON = "application/json"
_PREFIX, _SUFFIX = "application/vnd.kafka.", ".v2+json"


class Format(StrEnum):
    """Formats by their names in version 3; version 2 has them in lower case."""

    BINARY = "BINARY"
    JSON = "JSON"
    STRING = "STRING"
    AVRO = "AVRO"
    JSONSCHEMA = "JSONSCHEMA"
    PROTOBUF = "PROTOBUF"

    @property
    def requires_schema(self) -> bool:
        return self in (Format.AVRO, Format.JSONSCHEMA, Format.PROTOBUF)

    @property
    def media_type(self) -> str:
        return f"{_PREFIX}{self.value.lower()}{_SUFFIX}"


V2_FORMATS = tuple(one for one in Format if one is not Format.STRING)
"""Version 2 does not have plain text."""
_BY_MEDIA_TYPE = {one.media_type: one for one in V2_FORMATS}
V2_BODY_TYPES = tuple(_BY_MEDIA_TYPE)
_CONTROL_TYPES = (V2_JSON, PLAIN_JSON, *V2_BODY_TYPES)


def produced_format(request: Request) -> Format:
    """Return the format of a produce request of version 2."""
    given = media_type(request)
    found = _BY_MEDIA_TYPE.get(given)
    if found is None:
        raise UnsupportedMediaType(
            f"HTTP 415 Unsupported Media Type: {given or 'no Content-Type'} does not name a format"
            f" of records; send one of {', '.join(V2_BODY_TYPES)}"
        )
    return found


def check_control_type(request: Request) -> None:
    """Require JSON as the media type of a body without records, if the type is given."""
    given = media_type(request)
    if given and given not in _CONTROL_TYPES:
        raise UnsupportedMediaType(f"HTTP 415 Unsupported Media Type: send {V2_JSON}, not {given}")


def wanted_formats(request: Request) -> Format | None:
    """Return the format in the Accept header; None for the format of the consumer."""
    accept = request.headers.get("accept", "")
    chosen = choose(accept, (V2_JSON, PLAIN_JSON, *V2_BODY_TYPES))
    if chosen is None:
        raise NotAcceptable(
            f"HTTP 406 Not Acceptable: records are available as one of {', '.join(V2_BODY_TYPES)}"
        )
    # `*/*` does not name a format.
    return _BY_MEDIA_TYPE.get(chosen)


def answer_type(request: Request) -> str:
    """Return the media type of an answer: that of version 2, or plain JSON if requested."""
    accept = request.headers.get("accept", "")
    if accept in ("", "*/*", V2_JSON):
        return V2_JSON
    chosen = choose(accept, (V2_JSON, PLAIN_JSON, *V2_BODY_TYPES))
    if chosen is None:
        raise NotAcceptable(f"HTTP 406 Not Acceptable: answers are available as {V2_JSON}")
    return V2_JSON if chosen in V2_BODY_TYPES else chosen
