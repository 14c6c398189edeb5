"""The controller listener over a loopback socket: every peer gets its answer, or the end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from headrace.broker.registration import broker_registration
from headrace.errors import (
    InconsistentClusterId,
    InvalidRequest,
    NotController,
    PrincipalDeserializationFailure,
    StaleBrokerEpoch,
    UnknownServerError,
    UnsupportedVersion,
)
from headrace.metadata.image import Endpoint
from headrace.peers.channel import Channel
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.api_messages import response_type_of
from headrace.protocol.codec import DecodeError, decode
from headrace.protocol.framing import SIZE_BYTES, encode_request, read_response_header
from headrace.protocol.message import Message
from headrace.protocol.metadata_topic import METADATA_TOPIC, METADATA_TOPIC_ID
from headrace.protocol.schemas import describe_quorum, fetch
from headrace.protocol.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.protocol.schemas.broker_heartbeat import BrokerHeartbeatRequest
from headrace.protocol.schemas.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.protocol.schemas.envelope import EnvelopeRequest, EnvelopeResponse
from headrace.protocol.schemas.metadata import MetadataRequest
from headrace.protocol.uuids import ZERO
from headrace.quorum.envelopes import enclosed, encoded_principal, opened
from headrace.quorum.listener import FRAME_BYTES_MAX, ControllerListener, Serve, answered
from headrace.quorum.quorum_node import QuorumNode
from headrace.raft import messages
from headrace.raft.log import OffsetAndEpoch
from headrace.raft.replicas import ReplicaKey
from headrace.security.principals import ANONYMOUS, Caller
from tests.builders.metadata_nodes import active, formatted, image_in
from tests.builders.metadata_quorums import CLUSTER_ID, directory_id, setting
from tests.builders.quorum_nodes import HOST, bound, node_in, port_of
from tests.builders.virtual_time import LoopClock, in_virtual_time

OBSERVER = ReplicaKey(9, b"9" * 16)
LOOPBACK = b"\x7f\0\0\1"
DESCRIBE = describe_quorum.DescribeQuorumRequest(
    [
        describe_quorum.DescribeQuorumRequestTopicData(
            METADATA_TOPIC, [describe_quorum.DescribeQuorumRequestPartitionData(0)]
        )
    ]
)


@contextlib.asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[tuple[QuorumNode, Channel]]:
    """A quorum of one with a port, and a channel to it."""
    sock = bound()
    node = node_in(directory, {1: port_of(sock)})
    await node.start([sock])
    await node.controller.wait_until_active()
    channel = Channel(HOST, port_of(sock), "test")
    yield node, channel
    channel.close()
    await node.close()


async def with_broker(channel: Channel) -> int:
    """Register broker 1 and unfence it; returns its epoch."""
    request = broker_registration(
        1, CLUSTER_ID, [Endpoint("PLAINTEXT", HOST, 9092)], log_dirs=[directory_id(1)]
    )
    registered = await channel.ask(request)
    beat = BrokerHeartbeatRequest(1, registered.broker_epoch, current_metadata_offset=1 << 40)
    assert not (await channel.ask(beat)).is_fenced
    epoch: int = registered.broker_epoch
    return epoch


def fetch_from(offset: int, epoch: int, *, cluster_id: str = CLUSTER_ID) -> fetch.FetchRequest:
    request = messages.fetch_request(
        cluster_id, OBSERVER, epoch, OffsetAndEpoch(offset, epoch if offset else 0), -1, 1 << 20
    )
    assert isinstance(request, fetch.FetchRequest)
    return request


def serve_of(node: QuorumNode) -> Serve:
    assert node.others is not None
    return node.others.serve


class TestAnswers:
    async def test_api_versions_have_the_features_with_kraft_version(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as (_, channel):
            answer = await channel.ask(ApiVersionsRequest("test", "1"))
            levels = {one.name: one.max_version_level for one in answer.finalized_features}
            assert levels["kraft.version"] == 1
            keys = {one.api_key for one in answer.api_keys}
            assert {ApiKey.VOTE, ApiKey.FETCH, ApiKey.ENVELOPE, ApiKey.CREATE_TOPICS} <= keys
            assert ApiKey.PRODUCE not in keys

    async def test_older_clients_see_no_feature_from_level_0(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as (_, channel):
            request = ApiVersionsRequest("test", "1")
            older = await channel.ask(request, version=3)
            newer = await channel.ask(request, version=4)
            assert all(one.min_version > 0 for one in older.supported_features)
            assert "kraft.version" in {one.name for one in newer.supported_features}

    async def test_an_unknown_version_of_api_versions_gets_the_known_ones(
        self, tmp_path: Path
    ) -> None:
        async with serving(tmp_path) as (node, _):
            frame = bytearray(encode_request(ApiVersionsRequest(), 4, 5)[SIZE_BYTES:])
            frame[2:4] = b"\x00\x63"
            answer = await answered(bytes(frame), serve_of(node))
            decoded = decode(ApiVersionsResponse, 0, memoryview(answer)[8:])
            assert decoded.error_code == UnsupportedVersion.code
            assert [one.api_key for one in decoded.api_keys] == [ApiKey.API_VERSIONS]

    @pytest.mark.parametrize("version", describe_quorum.DescribeQuorumRequest.VERSIONS)
    async def test_the_quorum_is_described_in_every_version(
        self, tmp_path: Path, version: int
    ) -> None:
        async with serving(tmp_path) as (_, channel):
            answer = await channel.ask(DESCRIBE, version=version)
            (partition,) = answer.topics[0].partitions
            assert (partition.error_code, partition.leader_id) == (0, 1)
            assert [one.replica_id for one in partition.current_voters] == [1]
            assert bool(answer.nodes) == (version >= 2)

    @pytest.mark.parametrize("version", [12, fetch.FetchRequest.VERSIONS[-1]])
    async def test_an_observer_fetches_the_log(self, tmp_path: Path, version: int) -> None:
        async with serving(tmp_path) as (node, channel):
            request = fetch_from(0, 1)
            if version < 15:
                request.replica_id, request.replica_state = OBSERVER.id, fetch.ReplicaState()
            if version < 17:
                request.topics[0].partitions[0].replica_directory_id = ZERO
            answer = await channel.ask(request, version=version)
            (topic,) = answer.responses
            (partition,) = topic.partitions
            assert topic.topic_id == METADATA_TOPIC_ID or topic.topic == METADATA_TOPIC
            assert bytes(partition.records) == node.quorum.log.read(0, 1 << 20)
            assert partition.high_watermark == node.quorum.high_watermark

    async def test_a_vote_in_an_older_version_is_answered(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as (_, channel):
            request = messages.vote_request(
                CLUSTER_ID, OBSERVER, ReplicaKey(1), 1, OffsetAndEpoch(0, 0), pre_vote=False
            )
            answer = await channel.ask(request, version=0)
            assert not answer.topics[0].partitions[0].vote_granted

    async def test_brokers_register_and_send_heartbeats(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as (node, channel):
            epoch = await with_broker(channel)
            assert node.controller.image.is_active(1)
            stale = await channel.ask(BrokerHeartbeatRequest(1, epoch - 1))
            assert stale.error_code == StaleBrokerEpoch.code

    async def test_another_cluster_is_refused(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as (_, channel):
            fetched = await channel.ask(fetch_from(0, 1, cluster_id="another"))
            assert fetched.error_code == InconsistentClusterId.code
            request = broker_registration(1, "another", [], log_dirs=[directory_id(1)])
            assert (await channel.ask(request)).error_code == InconsistentClusterId.code

    async def test_pipelined_requests_are_answered_in_order(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as (_, channel):
            asked: list[Message] = [DESCRIBE, ApiVersionsRequest("t", "1")] * 100
            answers = await asyncio.gather(*map(channel.ask, asked))
            assert [type(one) for one in answers] == [response_type_of(type(one)) for one in asked]


class TestEnvelopes:
    async def open(self, channel: Channel, request: Message, version: int) -> Any:
        response: EnvelopeResponse = await channel.ask(enclosed(request, version, "client"))
        assert response.error_code == 0
        answer = response_type_of(type(request))
        return opened(response, answer, request.API_KEY, version)

    @pytest.mark.parametrize("version", CreateTopicsRequest.VERSIONS)
    async def test_a_forwarded_request_is_decided(self, tmp_path: Path, version: int) -> None:
        async with serving(tmp_path) as (node, channel):
            await with_broker(channel)
            request = CreateTopicsRequest([CreatableTopic("orders", 2, 1)])
            answer: CreateTopicsResponse = await self.open(channel, request, version)
            assert [(one.name, one.error_code) for one in answer.topics] == [("orders", 0)]
            assert list(node.controller.image.topics) == ["orders"]

    @pytest.mark.parametrize("version", describe_quorum.DescribeQuorumRequest.VERSIONS)
    async def test_a_request_of_a_tool_is_answered(self, tmp_path: Path, version: int) -> None:
        async with serving(tmp_path) as (_, channel):
            answer = await self.open(channel, DESCRIBE, version)
            assert answer.topics[0].partitions[0].leader_id == 1

    @pytest.mark.parametrize(
        ("data", "error"),
        [
            (encode_request(MetadataRequest(), 12, 1)[SIZE_BYTES:], UnsupportedVersion),
            (encode_request(BrokerHeartbeatRequest(), 0, 1)[SIZE_BYTES:], UnsupportedVersion),
            (b"\x00\x13\x7f\xff\x00\x00\x00\x01\xff\xff\x00", UnsupportedVersion),
            (b"", InvalidRequest),
            (encode_request(DESCRIBE, 2, 1)[SIZE_BYTES:-4], InvalidRequest),
        ],
    )
    async def test_an_unknown_or_invalid_request_gets_an_error(
        self, tmp_path: Path, data: bytes, error: type[Exception]
    ) -> None:
        """A broker waits for each envelope before it sends the next one."""
        async with serving(tmp_path) as (_, channel):
            response = await channel.ask(
                EnvelopeRequest(data, encoded_principal(ANONYMOUS), LOOPBACK)
            )
            assert response.error_code == error.code  # type: ignore[attr-defined]
            assert (await channel.ask(DESCRIBE)).error_code == 0

    @pytest.mark.parametrize(
        ("principal", "host"),
        [(b"", LOOPBACK), (b"\0\1\0\0\0\0", LOOPBACK), (encoded_principal(ANONYMOUS), b"\1")],
        ids=["no principal", "a principal of a newer version", "no address"],
    )
    async def test_an_envelope_must_name_its_client(
        self, tmp_path: Path, principal: bytes, host: bytes
    ) -> None:
        data = encode_request(DESCRIBE, 2, 1)[SIZE_BYTES:]
        async with serving(tmp_path) as (_, channel):
            response = await channel.ask(EnvelopeRequest(data, principal, host))
            assert response.error_code == PrincipalDeserializationFailure.code

    async def test_a_standby_answers_not_controller(self) -> None:
        async def serve(request: Message, version: int, caller: Caller) -> Message:
            raise NotController("another node leads the metadata quorum")

        answer = await envelope_served_by(serve)
        assert answer.error_code == NotController.code

    async def test_a_failure_of_the_controller_is_an_error_of_the_request(self) -> None:
        async def serve(request: Message, version: int, caller: Caller) -> Message:
            raise ZeroDivisionError

        answer = await envelope_served_by(serve)
        assert answer.error_code == 0
        decided = opened(answer, CreateTopicsResponse, ApiKey.CREATE_TOPICS, 7)
        assert isinstance(decided, CreateTopicsResponse)
        assert [one.error_code for one in decided.topics] == [UnknownServerError.code]


async def envelope_served_by(serve: Any) -> EnvelopeResponse:
    request = enclosed(CreateTopicsRequest([CreatableTopic("orders", 1, 1)]), 7, None)
    frame = encode_request(request, 0, 1)[SIZE_BYTES:]
    answer = await answered(frame, serve)
    _, position = read_response_header(answer, ApiKey.ENVELOPE, 0, SIZE_BYTES)
    return decode(EnvelopeResponse, 0, memoryview(answer)[position:])


class TestConnections:
    @pytest.mark.parametrize(
        "data",
        [
            (FRAME_BYTES_MAX + 1).to_bytes(4),
            bytes(4),
            b"\xff\xff\xff\xff",
            b"\x00\x00\x00\x02\x00\x00",
            b"GET / HTTP/1.1\r\n\r\n",
            encode_request(MetadataRequest(), 12, 1),
        ],
    )
    async def test_bytes_that_are_no_request_end_the_connection(
        self, tmp_path: Path, data: bytes
    ) -> None:
        async with serving(tmp_path) as (_, channel):
            reader, writer = await asyncio.open_connection(HOST, channel.port)
            writer.write(data)
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()
            assert (await channel.ask(DESCRIBE)).error_code == 0

    async def test_a_peer_that_reads_no_answers_is_served_no_further(self) -> None:
        served = 0

        async def serve(request: Message, version: int, caller: Caller) -> Message:
            nonlocal served
            served += 1
            return fetch.FetchResponse(
                responses=[
                    fetch.FetchableTopicResponse(
                        METADATA_TOPIC,
                        METADATA_TOPIC_ID,
                        [fetch.PartitionData(records=bytes(1 << 20))],
                    )
                ]
            )

        sock = bound()
        listener = ControllerListener(serve)
        await listener.listen([sock])
        reader, writer = await asyncio.open_connection(HOST, port_of(sock))
        frame = encode_request(fetch_from(0, 1), 17, 1)
        writer.write(frame * 200)
        before = -1
        while before != served:  # Until nothing moves any more.
            before = served
            for _ in range(50):
                await asyncio.sleep(0)
        assert 0 < served < 100
        for _ in range(200):
            size = int.from_bytes(await reader.readexactly(4))
            await reader.readexactly(size)
        assert served == 200
        writer.close()
        listener.close()

    async def test_connections_end_with_the_listener(self, tmp_path: Path) -> None:
        async with serving(tmp_path) as (node, channel):
            await channel.connect()
            await node.close()
            await channel.lost()


def mutated(frame: bytes, chance: Random) -> bytes:
    """Change, remove, insert or repeat a few bytes."""
    data = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data)) if data else 0
        match chance.randrange(5):
            case 0 if data:
                data[at] = chance.randrange(256)
            case 1 if data:
                data[at] ^= 1 << chance.randrange(8)
            case 2:
                del data[at : at + chance.randint(1, 8)]
            case 3:
                data[at:at] = chance.randbytes(chance.randint(1, 8))
            case _:
                data[at:at] = data[at : at + chance.randint(1, 8)]
    return bytes(data)


class TestHostileFrames:
    def frames(self, node: QuorumNode) -> list[bytes]:
        end = OffsetAndEpoch(node.quorum.log.end_offset, 1)
        requests: list[Message] = [
            ApiVersionsRequest("test", "1"),
            DESCRIBE,
            fetch_from(0, 1),
            fetch_from(end.end_offset, 1),
            messages.snapshot_request(CLUSTER_ID, OBSERVER, 1, OffsetAndEpoch(5, 1), 0, 100),
            BrokerHeartbeatRequest(1, 3),
            enclosed(DESCRIBE, 2, "client"),
            enclosed(CreateTopicsRequest([CreatableTopic("", 1, 1)]), 7, "client"),
        ]
        return [encode_request(one, one.VERSIONS[-1], 7, "x")[SIZE_BYTES:] for one in requests]

    @pytest.mark.parametrize("seed", range(6))
    async def test_mutated_requests_change_nothing(self, tmp_path: Path, seed: int) -> None:
        chance = Random(seed)
        async with serving(tmp_path) as (node, channel):
            await with_broker(channel)
            before, end = node.controller.image, node.quorum.log.end_offset
            frames = self.frames(node)
            for _ in range(400):
                frame = mutated(chance.choice(frames), chance)
                try:
                    async with asyncio.timeout(0.002):
                        await answered(frame, serve_of(node))
                except (DecodeError, TimeoutError):
                    continue
            assert (node.controller.image, node.quorum.log.end_offset) == (before, end)
            assert (await channel.ask(DESCRIBE)).topics[0].partitions[0].leader_id == 1

    @pytest.mark.parametrize("seed", range(3))
    async def test_garbage_on_connections_does_not_disturb_others(
        self, tmp_path: Path, seed: int
    ) -> None:
        chance = Random(seed)
        async with serving(tmp_path) as (node, channel):
            await with_broker(channel)
            frames = self.frames(node)
            for _ in range(40):
                _, writer = await asyncio.open_connection(HOST, channel.port)
                for _ in range(5):
                    body = mutated(chance.choice(frames), chance)
                    is_cut = chance.random() < 0.2
                    writer.write(len(body).to_bytes(4) + (body[:-3] if is_cut else body))
                writer.write(chance.randbytes(50))
                writer.close()
            request = CreateTopicsRequest([CreatableTopic("orders", 1, 1)])
            await channel.ask(enclosed(request, 7, None))
            assert list(node.controller.image.topics) == ["orders"]
            image = node.controller.image
        assert image_in(tmp_path) == image

    @pytest.mark.parametrize("seed", range(3))
    def test_mutated_votes_cost_no_more_than_elections(self, tmp_path: Path, seed: int) -> None:
        """A vote of a newer epoch ends a leadership, also that of a replica which is no voter."""
        chance = Random(seed)

        async def run() -> None:
            controller = await active(formatted(tmp_path), clock=LoopClock())
            replica = controller.replica
            await controller.submit(setting("a"))
            request = messages.vote_request(
                CLUSTER_ID, OBSERVER, ReplicaKey(1), 1, OffsetAndEpoch(0, 0), pre_vote=False
            )
            frame = encode_request(request, 2, 7, "x")[SIZE_BYTES:]

            async def serve(asked: Message, version: int, caller: Caller) -> Message:
                answer: Message = await replica.ask(asked)
                return answer

            for _ in range(300):
                with contextlib.suppress(DecodeError):
                    await answered(mutated(frame, chance), serve)
            await asyncio.sleep(10)
            await controller.wait_until_active()
            assert controller.image.configs_of(4, "")["a"] == "x"
            await controller.end()

        in_virtual_time(run())
