"""Versions are settled, answers are read, silence is an error."""

import pytest

from headrace.client import connection as module
from headrace.client.addresses import Address
from headrace.client.connection import Connection, ConnectionLost, HungUp, NoAnswer, NotKafka
from headrace.client.security import Security
from headrace.errors import UnsupportedVersion
from headrace.protocol.message import Message
from headrace.protocol.schemas.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from headrace.protocol.schemas.describe_quorum import DescribeQuorumRequest
from headrace.protocol.schemas.list_offsets import ListOffsetsRequest
from headrace.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from tests.unit.client.scripted import ADDRESS, ScriptedSocket, connected, versions


def broker_knowing(low: int, high: int) -> tuple[Connection, ScriptedSocket]:
    """A broker that answers Metadata in these versions."""

    def script(request: Message, version: int) -> Message | None:
        if isinstance(request, ApiVersionsRequest):
            return versions({18: (0, 4), 3: (low, high), 2: (20, 30)})
        return MetadataResponse(controller_id=7)

    return connected(script)


@pytest.mark.parametrize(("high", "used"), [(4, 4), (13, 13), (99, 13)])
def test_the_newest_version_that_both_support_is_used(high: int, used: int) -> None:
    connection, opened = broker_knowing(0, high)
    answer = connection.call(MetadataRequest(topics=None), MetadataResponse)
    assert answer.controller_id == 7
    assert opened.seen[-1] == (3, used)


def test_no_common_version_is_an_error_that_names_both() -> None:
    connection, _ = broker_knowing(0, 5)
    with pytest.raises(UnsupportedVersion, match="LIST_OFFSETS 20 to 30, this client 1 to 11"):
        connection.version_of(ListOffsetsRequest())
    with pytest.raises(UnsupportedVersion, match="does not offer DESCRIBE_QUORUM"):
        connection.version_of(DescribeQuorumRequest())
    assert not connection.understands(ListOffsetsRequest)
    assert not connection.understands(DescribeQuorumRequest)
    assert connection.understands(MetadataRequest)


def test_a_broker_that_refuses_our_api_versions_is_asked_in_its_own() -> None:
    def script(request: Message, version: int) -> Message | None:
        answer = versions({18: (0, 2), 3: (0, 8)})
        if version > 2:
            answer.error_code = UnsupportedVersion.code
        return answer

    connection, opened = connected(script)
    assert opened.seen == [(18, 4), (18, 2)]
    assert connection.version_of(MetadataRequest()) == 8


def test_a_broker_that_hangs_up_is_asked_again_in_version_0(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def script(request: Message, version: int) -> Message | None:
        return versions({18: (0, 0), 3: (0, 1)}) if version == 0 else None

    second = ScriptedSocket(script)
    monkeypatch.setattr(module, "connect", lambda address, timeout_s: second)
    connection, first = connected(script)
    assert first.is_closed
    assert (first.seen, second.seen) == ([(18, 4)], [(18, 0)])
    assert connection.version_of(MetadataRequest()) == 1


def test_silence_is_a_lost_connection() -> None:
    def script(request: Message, version: int) -> Message | None:
        return versions({3: (0, 13)}) if isinstance(request, ApiVersionsRequest) else None

    connection, opened = connected(script)
    with pytest.raises(HungUp, match="broker:9092 did not answer METADATA: it closed"):
        connection.call(MetadataRequest(), MetadataResponse)
    assert opened.is_closed


@pytest.mark.parametrize(
    ("answer", "reported"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it speaks HTTP"),
        (
            b"\x15\x03\x03\x00\x02\x02\x50",
            "it speaks TLS, but security.protocol is set to plaintext",
        ),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "it speaks SSH"),
        (b"+ERR unknown command\r\n", r"its answer starts with b'\+ERR'"),
        (b"\0\0\0\x08\0\0\0\x01\xff\xff\xff\xff", "does not speak Kafka's protocol"),
    ],
)
def test_a_port_of_another_protocol_is_reported_as_such(
    monkeypatch: pytest.MonkeyPatch, answer: bytes, reported: str
) -> None:
    class Stranger(ScriptedSocket):
        def sendall(self, frame: bytes) -> None:
            self.unread += answer

    def connect(*_: object) -> ScriptedSocket:
        return Stranger(lambda request, version: None)

    monkeypatch.setattr(module, "connect", connect)
    with pytest.raises(NotKafka, match=reported):
        Connection.open(Address("web", 80), Security(), 1)


def test_a_broker_that_hangs_up_on_the_first_request_is_distinguished() -> None:
    """A listener that requires a login closes connections without one."""
    calls = iter((MetadataResponse(), None))

    def after_login(request: Message, version: int) -> Message | None:
        return versions({3: (0, 13)}) if isinstance(request, ApiVersionsRequest) else next(calls)

    connection, _ = connected(after_login)
    connection.call(MetadataRequest(), MetadataResponse)
    with pytest.raises(ConnectionLost) as later:
        connection.call(MetadataRequest(), MetadataResponse)
    assert not isinstance(later.value, HungUp)


def test_a_listener_that_requires_tls_hangs_up_on_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    class Secured(ScriptedSocket):
        def recv_into(self, view: memoryview) -> int:
            raise ConnectionResetError

    def connect(*_: object) -> ScriptedSocket:
        return Secured(lambda request, version: None)

    monkeypatch.setattr(module, "connect", connect)
    with pytest.raises(HungUp, match="did not answer API_VERSIONS"):
        Connection.open(Address("secured", 9092), Security(), 1)


def test_silence_on_opening_is_not_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(ScriptedSocket):
        def recv_into(self, view: memoryview) -> int:
            raise TimeoutError

    opened: list[ScriptedSocket] = []

    def connect(*_: object) -> ScriptedSocket:
        opened.append(Silent(lambda request, version: None))
        return opened[-1]

    monkeypatch.setattr(module, "connect", connect)
    with pytest.raises(NoAnswer, match="did not answer API_VERSIONS: no answer in time"):
        Connection.open(Address("silent", 80), Security(), 1)
    assert len(opened) == 1


def test_an_answer_to_another_request_is_rejected() -> None:
    connection, opened = broker_knowing(0, 13)
    opened.unread = bytes((0, 0, 0, 5, 0, 0, 0, 99, 0))
    with pytest.raises(ConnectionLost, match="a different request"):
        connection.call(MetadataRequest(), MetadataResponse)


def test_features_are_kept_from_the_first_answer() -> None:
    def script(request: Message, version: int) -> Message | None:
        return ApiVersionsResponse(
            api_keys=versions({18: (0, 4)}).api_keys,
            finalized_features=[FinalizedFeatureKey(name="metadata.version", max_version_level=25)],
        )

    connection, _ = connected(script)
    assert connection.finalized_features[0].max_version_level == 25
    assert connection.address == ADDRESS
