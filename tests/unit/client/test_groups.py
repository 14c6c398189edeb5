"""Descriptions of many groups with few requests."""

from collections.abc import Callable

import pytest

from headrace.client.admin import Admin
from headrace.client.cluster import Cluster
from headrace.client.group_descriptions import ListedGroup
from headrace.errors import GroupAuthorizationFailed, GroupIdNotFound
from headrace.protocol.message import Message
from headrace.protocol.schemas.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from headrace.protocol.schemas.consumer_group_describe import DescribedGroup as ConsumerGroup
from headrace.protocol.schemas.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from headrace.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from tests.unit.client.scripted import connected, knowing_all


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Message]], Admin]:
    """An admin client of a broker with the groups `new` and `old`, which collects requests."""

    def build(seen: list[Message]) -> Admin:
        def script(request: Message, version: int) -> Message | None:
            if isinstance(request, MetadataRequest):
                return MetadataResponse(controller_id=0)
            seen.append(request)
            if isinstance(request, ConsumerGroupDescribeRequest):
                return ConsumerGroupDescribeResponse(groups=list(map(consumer, request.group_ids)))
            assert isinstance(request, DescribeGroupsRequest)
            return DescribeGroupsResponse(groups=list(map(classic, request.groups)))

        found = Admin("broker:9092", timeout_s=1)
        opened, _ = connected(knowing_all(script))
        monkeypatch.setattr(Cluster, "connection", lambda self, node_id=-1: opened)
        monkeypatch.setattr(found.groups, "coordinator_of", lambda group: 0)
        return found

    return build


def consumer(group: str) -> ConsumerGroup:
    if group != "new":
        return ConsumerGroup(group_id=group, error_code=GroupIdNotFound.code)
    return ConsumerGroup(group_id=group, group_state="Stable", assignor_name="uniform")


def classic(group: str) -> DescribedGroup:
    if group == "secret":
        return DescribedGroup(group_id=group, error_code=GroupAuthorizationFailed.code)
    state = "Empty" if group == "old" else "Dead"
    return DescribedGroup(group_id=group, group_state=state)


def listed(*groups: str) -> list[ListedGroup]:
    return [
        ListedGroup(group=one, type="", state="", protocol_type="consumer", coordinator=0)
        for one in groups
    ]


def test_groups_of_a_coordinator_take_one_request_per_protocol(
    admin: Callable[[list[Message]], Admin],
) -> None:
    seen: list[Message] = []
    found = admin(seen).groups.describe_all(listed("old", "new"))
    assert [(one.group, one.type, one.state) for one in found] == [
        ("new", "consumer", "Stable"),
        ("old", "classic", "Empty"),
    ]
    assert [type(one) for one in seen] == [ConsumerGroupDescribeRequest, DescribeGroupsRequest]


def test_a_deleted_group_is_left_out(admin: Callable[[list[Message]], Admin]) -> None:
    found = admin([]).groups.describe_all(listed("old", "deleted"))
    assert [one.group for one in found] == ["old"]


def test_another_error_is_raised(admin: Callable[[list[Message]], Admin]) -> None:
    with pytest.raises(GroupAuthorizationFailed):
        admin([]).groups.describe_all(listed("secret"))
