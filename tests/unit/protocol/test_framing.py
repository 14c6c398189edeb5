"""Headers by API and version, and frames as real clients send them."""

import pytest
from kio.index import load_request_schema, load_response_schema

from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import DecodeError, decode
from headrace.protocol.framing import (
    RequestHeader,
    encode_request,
    encode_response,
    is_flexible,
    read_request_header,
    read_response_header,
    response_header_version,
)
from headrace.protocol.message import Message
from headrace.protocol.schemas.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from headrace.protocol.schemas.metadata import MetadataResponse
from tests.builders.messages import REQUESTS, every_version


@pytest.mark.parametrize(("message", "version"), every_version(REQUESTS))
def test_header_versions_are_kafkas(message: type[Message], version: int) -> None:
    key = message.API_KEY
    request, response = load_request_schema(key, version), load_response_schema(key, version)
    assert is_flexible(key, version) == (request.__header_schema__.__version__ == 2)
    assert response_header_version(key, version) == response.__header_schema__.__version__


def test_an_api_versions_answer_never_has_tags_in_its_header() -> None:
    """A client reads it before it has the version of the broker."""
    answer = encode_response(
        7, ApiKey.API_VERSIONS, 3, ApiVersionsResponse(api_keys=[ApiVersion(1, 4, 18)])
    )
    assert answer.hex(" ", -4) == "00000013 00000007 00000200 01000400 12000000 000000"


def test_a_flexible_answer_has_tags_in_its_header() -> None:
    answer = encode_response(7, ApiKey.METADATA, 12, MetadataResponse())
    assert answer[:9].hex() == "000000110000000700"
    correlation_id, position = read_response_header(answer, ApiKey.METADATA, 12, 4)
    assert correlation_id == 7
    assert decode(MetadataResponse, 12, answer, position) == MetadataResponse()


@pytest.mark.parametrize("client_id", [None, "", "rdkafka", "größe"])
@pytest.mark.parametrize("version", [0, 3])
def test_a_request_comes_back_from_its_frame(version: int, client_id: str | None) -> None:
    request = ApiVersionsRequest(*(("librdkafka", "2.12") if version == 3 else ()))
    frame = encode_request(request, version, 5, client_id)
    header, position = read_request_header(memoryview(frame), 4)
    assert header == RequestHeader(ApiKey.API_VERSIONS, version, 5, client_id)
    assert decode(ApiVersionsRequest, version, frame, position) == request
    assert int.from_bytes(frame[:4]) == len(frame) - 4


def test_tags_in_a_header_are_passed_over() -> None:
    frame = encode_request(ApiVersionsRequest("a", "1"), 3, 5, "me")
    position = 4 + 8 + 2 + 2
    tagged = frame[:position] + bytes.fromhex("01 64 03 616263") + frame[position + 1 :]
    header, position = read_request_header(tagged, 4)
    assert header.client_id == "me"
    assert decode(ApiVersionsRequest, 3, tagged, position) == ApiVersionsRequest("a", "1")


def test_an_unknown_api_has_a_header_all_the_same() -> None:
    """The dispatcher has to name the API that it refuses."""
    header, _ = read_request_header(bytes.fromhex("7fff 0001 00000009 ffff"))
    assert header == RequestHeader(0x7FFF, 1, 9, None)
    header, _ = read_request_header(bytes.fromhex("ffff 0001 00000009 ffff"))
    assert header.api_key == -1


@pytest.mark.parametrize(
    "cut", range(len(encode_request(ApiVersionsRequest(), 3, 1, "me")) - 4 - 3)
)
def test_a_cut_header_is_refused(cut: int) -> None:
    frame = encode_request(ApiVersionsRequest(), 3, 1, "me")[4:]
    with pytest.raises(DecodeError):
        read_request_header(frame[:cut])


@pytest.mark.parametrize("cut", range(5))
def test_a_cut_response_header_is_refused(cut: int) -> None:
    with pytest.raises(DecodeError):
        read_response_header(bytes(5)[:cut], ApiKey.METADATA, 12)
