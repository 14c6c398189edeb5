"""Envelopes: requests of clients that a broker forwards to the active controller (KIP-590).

An envelope contains the client's request with its header, and the principal of the client. The
response contains the embedded response with its header.
"""

from headrace.protocol.codec import decode
from headrace.protocol.framing import (
    SIZE_BYTES,
    encode_request,
    encode_response,
    read_request_header,
    read_response_header,
)
from headrace.protocol.message import Message
from headrace.protocol.schemas.envelope import EnvelopeRequest, EnvelopeResponse

_PRINCIPAL_VERSION = b"\0\0"
_ANONYMOUS = _PRINCIPAL_VERSION + b"\x05User" + b"\x0aANONYMOUS" + b"\0" + b"\0"
_LOOPBACK = bytes((127, 0, 0, 1))


def enclosed(request: Message, version: int, client_id: str | None) -> EnvelopeRequest:
    """Put a request into an envelope; clients have no names without security."""
    frame = encode_request(request, version, 0, client_id)
    return EnvelopeRequest(frame[SIZE_BYTES:], _ANONYMOUS, _LOOPBACK)


def opened(response: EnvelopeResponse, answer: type[Message], key: int, version: int) -> Message:
    """Return the embedded response."""
    data = response.response_data or b""
    _, position = read_response_header(data, key, version)
    return decode(answer, version, memoryview(data)[position:])


def sealed(envelope: EnvelopeRequest, answer: Message) -> EnvelopeResponse:
    """Put the response to an embedded request into the response of its envelope."""
    header, _ = read_request_header(envelope.request_data)
    frame = encode_response(header.correlation_id, header.api_key, header.api_version, answer)
    return EnvelopeResponse(response_data=frame[SIZE_BYTES:])
