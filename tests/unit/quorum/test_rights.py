"""The rights of peers on the controller listener, and ACLs in force with their records (SEC-7)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headrace.errors import ClusterAuthorizationFailed, TopicAuthorizationFailed
from headrace.peers.channel import Channel
from headrace.protocol.message import Message
from headrace.protocol.metadata_topic import METADATA_TOPIC
from headrace.protocol.schemas.create_acls import AclCreation, CreateAclsRequest
from headrace.protocol.schemas.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.protocol.schemas.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from headrace.protocol.schemas.describe_acls import DescribeAclsRequest
from headrace.protocol.schemas.describe_cluster import DescribeClusterRequest
from headrace.protocol.schemas.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from headrace.protocol.schemas.envelope import EnvelopeResponse
from headrace.protocol.schemas.vote import VoteRequest
from headrace.quorum.envelopes import enclosed, opened
from headrace.quorum.quorum_node import QuorumNode
from headrace.security.acls import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from headrace.security.principals import Caller, Principal
from headrace.settings.broker import STANDARD_AUTHORIZER
from tests.builders.quorum_nodes import HOST, bound, node_in, port_of

ADA = Caller(Principal("User", "ada"), "10.0.0.7")
ANY, ALL = 1, 2
QUORUM = DescribeQuorumRequest(
    [DescribeQuorumRequestTopicData(METADATA_TOPIC, [DescribeQuorumRequestPartitionData(0)])]
)
RULES = DescribeAclsRequest(ANY, None, ANY, None, None, ANY, ANY)
REQUESTS = [VoteRequest(), QUORUM, RULES, DescribeClusterRequest(endpoint_type=2)]


@contextlib.asynccontextmanager
async def serving(directory: Path, super_users: str) -> AsyncIterator[tuple[QuorumNode, Channel]]:
    """A quorum of one with an authorizer, and a channel of an anonymous peer."""
    sock = bound()
    node = node_in(
        directory,
        {1: port_of(sock)},
        authorizer_class_name=STANDARD_AUTHORIZER,
        super_users=super_users,
    )
    await node.start([sock])
    await node.controller.wait_until_active()
    channel = Channel(HOST, port_of(sock), "test")
    yield node, channel
    channel.close()
    await node.close()


def create_topic(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest([CreatableTopic(name, 1, 1)])


async def forwarded(channel: Channel, request: CreateTopicsRequest, caller: Caller) -> int:
    """Return the error of the one topic of a request in an envelope."""
    version = request.VERSIONS[-1]
    response: EnvelopeResponse = await channel.ask(enclosed(request, version, "c", caller))
    answer = opened(response, CreateTopicsResponse, request.API_KEY, version)
    assert isinstance(answer, CreateTopicsResponse)
    return answer.topics[0].error_code


def rule(kind: ResourceType, name: str, principal: str, operation: Operation) -> AclCreation:
    return AclCreation(kind, name, PatternType.LITERAL, principal, "*", operation, Permission.ALLOW)


@pytest.mark.parametrize("request_", REQUESTS)
async def test_a_peer_without_rights_is_refused(tmp_path: Path, request_: Message) -> None:
    async with serving(tmp_path, "User:admin") as (_, channel):
        assert (await channel.ask(request_)).error_code == ClusterAuthorizationFailed.code


async def test_a_peer_without_rights_cannot_forward(tmp_path: Path) -> None:
    async with serving(tmp_path, "User:admin") as (_, channel):
        admin = Caller(Principal("User", "admin"), "10.0.0.7")
        envelope = enclosed(create_topic("orders"), 7, "c", admin)
        assert (await channel.ask(envelope)).error_code == ClusterAuthorizationFailed.code


async def test_a_refused_node_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, "User:admin") as (_, channel):
        for _ in range(3):
            await channel.ask(VoteRequest())
        await channel.ask(QUORUM)
    events = [one for one in caplog.records if "CLUSTER_ACTION" in one.getMessage()]
    assert [one.__dict__["principal"] for one in events] == ["User:ANONYMOUS"]


@pytest.mark.parametrize("request_", REQUESTS[1:])
async def test_a_super_user_is_served(tmp_path: Path, request_: Message) -> None:
    async with serving(tmp_path, "User:ANONYMOUS") as (_, channel):
        assert (await channel.ask(request_)).error_code == 0


async def test_the_client_in_an_envelope_has_only_its_own_rights(tmp_path: Path) -> None:
    async with serving(tmp_path, "User:ANONYMOUS") as (_, channel):
        error = await forwarded(channel, create_topic("orders"), ADA)
        assert error == TopicAuthorizationFailed.code


async def test_a_rule_is_in_force_when_its_creation_is_answered(tmp_path: Path) -> None:
    async with serving(tmp_path, "User:ANONYMOUS") as (node, channel):
        creation = rule(ResourceType.TOPIC, "orders", "User:ada", Operation.ALL)
        await channel.ask(CreateAclsRequest([creation]))

        assert node.authorizer is not None
        kind = ResourceType.TOPIC
        assert node.authorizer.allows(ADA, Operation.CREATE, kind, "orders")
        assert (await channel.ask(RULES)).resources[0].resource_name == "orders"

        everything = DeleteAclsFilter(ANY, None, ANY, None, None, ANY, ANY)
        await channel.ask(DeleteAclsRequest([everything]))
        assert not node.authorizer.allows(ADA, Operation.CREATE, kind, "orders")


async def test_an_observer_applies_the_rules_of_the_active_controller(tmp_path: Path) -> None:
    async with serving(tmp_path / "1", "User:ANONYMOUS") as (_, channel):
        ports = {1: channel.port}
        observer = node_in(tmp_path / "4", ports, 4, authorizer_class_name=STANDARD_AUTHORIZER)
        await observer.start()
        creation = rule(ResourceType.CLUSTER, CLUSTER_NAME, "User:ada", Operation.ALTER)
        answer = await observer.ask(CreateAclsRequest([creation]))
        assert [one.error_code for one in answer.results] == [0]

        decider = observer.authorizer
        assert decider is not None
        async with asyncio.timeout(30):
            while not decider.allows(ADA, Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
                await asyncio.sleep(0.01)
        await observer.close()
