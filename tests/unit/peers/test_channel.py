"""Channels between nodes, against a small server that answers by the protocol."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from headrace.errors import UnsupportedVersion
from headrace.peers.channel import Channel
from headrace.peers.unreachable import PeerUnreachable
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import decode
from headrace.protocol.framing import encode_response, read_request_header
from headrace.protocol.schemas.alter_partition import AlterPartitionRequest
from headrace.protocol.schemas.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from headrace.protocol.schemas.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from headrace.protocol.schemas.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

Serve = Callable[[bytes], bytes | None]

VERSIONS = ApiVersionsResponse(
    api_keys=[
        ApiVersion(int(ApiKey.BROKER_HEARTBEAT), 0, 1),
        ApiVersion(int(ApiKey.FETCH), 4, 18),
    ]
)


def answered(frame: bytes) -> bytes | None:
    """Answer as a node does: heartbeats with the flag of the request, fetches with many bytes."""
    header, position = read_request_header(frame)
    key, version = header.api_key, header.api_version
    answer: ApiVersionsResponse | BrokerHeartbeatResponse | FetchResponse
    if key == ApiKey.API_VERSIONS:
        answer = VERSIONS
    elif key == ApiKey.FETCH:
        partition = PartitionData(records=bytes(300_000))
        answer = FetchResponse(responses=[FetchableTopicResponse("t", b"1" * 16, [partition])])
    else:
        request = decode(BrokerHeartbeatRequest, version, frame[position:])
        answer = BrokerHeartbeatResponse(is_fenced=request.want_fence)
    return encode_response(header.correlation_id, key, version, answer)


@asynccontextmanager
async def node(serve: Serve = answered) -> AsyncIterator[Channel]:
    """Serve frames on a port; None ends the connection."""

    served: list[asyncio.Task[None] | None] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(asyncio.current_task())
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                answer = serve(await reader.readexactly(size))
                if answer is None:
                    break
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionResetError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    channel = Channel("127.0.0.1", server.sockets[0].getsockname()[1], "test")
    yield channel
    channel.close()
    server.close()
    await asyncio.gather(*(one for one in served if one is not None))
    await asyncio.sleep(0)


async def test_requests_are_answered_in_order_over_one_connection() -> None:
    async with node() as channel:
        flags = [True, False, True]
        asked = [channel.ask(BrokerHeartbeatRequest(want_fence=flag)) for flag in flags]
        assert [one.is_fenced for one in await asyncio.gather(*asked)] == flags


async def test_the_newest_common_version_is_used() -> None:
    versions = []

    def serve(frame: bytes) -> bytes | None:
        header, _ = read_request_header(frame)
        versions.append((header.api_key, header.api_version))
        return answered(frame)

    async with node(serve) as channel:
        await channel.ask(BrokerHeartbeatRequest())
        assert versions[-1] == (ApiKey.BROKER_HEARTBEAT, 1)
        with pytest.raises(UnsupportedVersion, match="ALTER_PARTITION"):
            await channel.ask(AlterPartitionRequest())


async def test_an_answer_larger_than_the_buffer_arrives_whole() -> None:
    async with node() as channel:
        small, large, last = await asyncio.gather(
            channel.ask(BrokerHeartbeatRequest(want_fence=True)),
            channel.ask(FetchRequest()),
            channel.ask(BrokerHeartbeatRequest(want_fence=True)),
        )
        assert small.is_fenced
        assert last.is_fenced
        assert len(large.responses[0].partitions[0].records) == 300_000


async def test_a_lost_connection_fails_the_request_and_the_next_one_connects_again() -> None:
    seen = []

    def serve(frame: bytes) -> bytes | None:
        header, _ = read_request_header(frame)
        seen.append(header.api_key)
        is_first = header.api_key != ApiKey.API_VERSIONS and seen.count(header.api_key) == 1
        return None if is_first else answered(frame)

    async with node(serve) as channel:
        with pytest.raises(PeerUnreachable, match="was lost"):
            await channel.ask(BrokerHeartbeatRequest())
        assert not (await channel.ask(BrokerHeartbeatRequest())).is_fenced


async def test_a_port_without_a_process_refuses() -> None:
    async with node() as channel:
        pass
    with pytest.raises(PeerUnreachable) as failure:
        await channel.ask(BrokerHeartbeatRequest())
    assert failure.value.is_refused


async def test_a_request_without_an_answer_times_out() -> None:
    def serve(frame: bytes) -> bytes | None:
        header, _ = read_request_header(frame)
        return answered(frame) if header.api_key == ApiKey.API_VERSIONS else b""

    async with node(serve) as channel:
        with pytest.raises(PeerUnreachable, match=r"in 0\.05 s"):
            await channel.ask(BrokerHeartbeatRequest(), timeout_s=0.05)


async def test_a_channel_without_negotiation_sends_the_request_first() -> None:
    keys = []

    def serve(frame: bytes) -> bytes | None:
        header, _ = read_request_header(frame)
        keys.append(header.api_key)
        return answered(frame)

    async with node(serve) as negotiating:
        channel = Channel(negotiating.host, negotiating.port, "test", negotiates_versions=False)
        body = await channel.ask_raw(FetchRequest(), 18)
        assert len(body) > 300_000
        assert keys == [ApiKey.FETCH]
        channel.close()


async def test_a_peer_without_our_version_of_api_versions_is_asked_in_version_0() -> None:
    def serve(frame: bytes) -> bytes | None:
        header, _ = read_request_header(frame)
        if header.api_key == ApiKey.API_VERSIONS and header.api_version:
            refusal = ApiVersionsResponse(error_code=35)
            return encode_response(header.correlation_id, ApiVersionsRequest.API_KEY, 0, refusal)
        return answered(frame)

    async with node(serve) as channel:
        assert not (await channel.ask(BrokerHeartbeatRequest())).is_fenced
