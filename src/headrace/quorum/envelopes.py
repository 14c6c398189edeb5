"""Envelopes: requests of clients that a broker forwards to the active controller (KIP-590).

An envelope contains the client's request with its header, and the principal of the client. The
response contains the embedded response with its header.
"""

import struct
from ipaddress import ip_address
from typing import Annotated

from headrace.errors import PrincipalDeserializationFailure
from headrace.protocol.codec import DecodeError, decode, encode
from headrace.protocol.framing import (
    SIZE_BYTES,
    encode_request,
    encode_response,
    read_request_header,
    read_response_header,
)
from headrace.protocol.message import Message
from headrace.protocol.schemas.envelope import EnvelopeRequest, EnvelopeResponse
from headrace.protocol.schemas.records.principals import DefaultPrincipalData
from headrace.security.principals import UNKNOWN_CALLER, Caller, Principal

_PRINCIPAL_VERSION = struct.Struct(">h")


class PrincipalData(Message):
    """Kafka's `DefaultPrincipalData`, with the groups of a token or certificate.

    Kafka's nodes skip a field with an unknown tag.
    """

    VERSIONS = DefaultPrincipalData.VERSIONS
    FLEXIBLE_FROM = DefaultPrincipalData.FLEXIBLE_FROM

    type: Annotated[str, "0+"] = ""
    name: Annotated[str, "0+"] = ""
    token_authenticated: Annotated[bool, "0+"] = False
    groups: Annotated[list[str], "0+ tag=18514 ignorable"] = []  # noqa: RUF012  (msgspec copies it)


def enclosed(
    request: Message, version: int, client_id: str | None, caller: Caller = UNKNOWN_CALLER
) -> EnvelopeRequest:
    """Put a request of a client into an envelope."""
    frame = encode_request(request, version, 0, client_id)
    return EnvelopeRequest(
        frame[SIZE_BYTES:], encoded_principal(caller.principal), ip_address(caller.host).packed
    )


def encoded_principal(principal: Principal) -> bytes:
    """Return a principal in the form of Kafka's default principal builder."""
    version = PrincipalData.VERSIONS[-1]
    data = PrincipalData(
        principal.type, principal.name, principal.is_token_authenticated, list(principal.groups)
    )
    return _PRINCIPAL_VERSION.pack(version) + encode(data, version)


def caller_in(envelope: EnvelopeRequest) -> Caller:
    """Return the client of an envelope; raise PRINCIPAL_DESERIALIZATION_FAILURE if none."""
    data = memoryview(envelope.request_principal or b"")
    try:
        (version,) = _PRINCIPAL_VERSION.unpack_from(data)
        if version not in PrincipalData.VERSIONS:
            raise ValueError(f"version {version} of principals is unknown")
        found = decode(PrincipalData, version, data[_PRINCIPAL_VERSION.size :])
        host = str(ip_address(envelope.client_host_address))
    except (struct.error, DecodeError, ValueError) as error:
        raise PrincipalDeserializationFailure(f"an envelope names no client: {error}") from error
    groups = tuple(found.groups)
    return Caller(Principal(found.type, found.name, found.token_authenticated, groups), host)


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
