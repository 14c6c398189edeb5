"""The forms in which keys and values come in requests and go out in answers."""

from enum import StrEnum

from starlette.requests import Request

from headrace.http.bodies import media_type
from headrace.http.errors import NotAcceptable, UnsupportedMediaType
from headrace.http.negotiation import choose

V2_JSON = "application/vnd.kafka.v2+json"
PLAIN_JSON = "application/json"
_PREFIX, _SUFFIX = "application/vnd.kafka.", ".v2+json"


class Format(StrEnum):
    """By the names of version 3; those of version 2 are the same in lower case."""

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
"""Version 2 has no plain text."""
_BY_MEDIA_TYPE = {one.media_type: one for one in V2_FORMATS}
V2_BODY_TYPES = tuple(_BY_MEDIA_TYPE)
_CONTROL_TYPES = (V2_JSON, PLAIN_JSON, *V2_BODY_TYPES)


def produced_format(request: Request) -> Format:
    """The form of the records of a produce request of version 2."""
    given = media_type(request)
    found = _BY_MEDIA_TYPE.get(given)
    if found is None:
        raise UnsupportedMediaType(
            f"HTTP 415 Unsupported Media Type: {given or 'no Content-Type'} names no form of"
            f" records; send one of {', '.join(V2_BODY_TYPES)}"
        )
    return found


def check_control_type(request: Request) -> None:
    """Whether a body that holds no records is announced as JSON; nothing said is fine."""
    given = media_type(request)
    if given and given not in _CONTROL_TYPES:
        raise UnsupportedMediaType(f"HTTP 415 Unsupported Media Type: send {V2_JSON}, not {given}")


def wanted_formats(request: Request) -> Format | None:
    """The form that a read asks for by its Accept header; None leaves it to the consumer's."""
    accept = request.headers.get("accept", "")
    chosen = choose(accept, (V2_JSON, PLAIN_JSON, *V2_BODY_TYPES))
    if chosen is None:
        raise NotAcceptable(
            f"HTTP 406 Not Acceptable: records come as one of {', '.join(V2_BODY_TYPES)}"
        )
    # A star covers everything, so it names no form; a form of its own does.
    return _BY_MEDIA_TYPE.get(chosen)


def answer_type(request: Request) -> str:
    """What an answer of version 2 is called: its own type unless plain JSON is wanted."""
    accept = request.headers.get("accept", "")
    if accept in ("", "*/*", V2_JSON):
        return V2_JSON
    chosen = choose(accept, (V2_JSON, PLAIN_JSON, *V2_BODY_TYPES))
    if chosen is None:
        raise NotAcceptable(f"HTTP 406 Not Acceptable: answers come as {V2_JSON}")
    return V2_JSON if chosen in V2_BODY_TYPES else chosen
