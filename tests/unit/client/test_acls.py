"""Access rules by the wire."""

from collections.abc import Callable

import pytest

from headrace.client.admin import Admin
from headrace.client.cluster import Cluster
from headrace.errors import ClusterAuthorizationFailed, SecurityDisabled
from headrace.protocol.message import Message
from headrace.protocol.schemas.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from headrace.protocol.schemas.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from headrace.protocol.schemas.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from headrace.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from headrace.security.acls import (
    AclBinding,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from tests.unit.client.scripted import connected, knowing_all, versions

RULE = AclBinding(
    ResourceType.TOPIC,
    "orders",
    PatternType.LITERAL,
    "User:ada",
    "*",
    Operation.READ,
    Permission.ALLOW,
)

Administering = Callable[[Callable[[Message], Message | None]], Admin]


@pytest.fixture
def administering(monkeypatch: pytest.MonkeyPatch) -> Administering:
    """An admin client of a broker that is a function."""

    def make(answer: Callable[[Message], Message | None]) -> Admin:
        def script(request: Message, _: int) -> Message | None:
            if isinstance(request, MetadataRequest):
                return MetadataResponse()
            return answer(request)

        opened = connected(knowing_all(script))[0]
        monkeypatch.setattr(Cluster, "_open", lambda self, node_id: opened)
        return Admin("broker:9092", timeout_s=1)

    return make


def test_rules_are_found_in_order(administering: Administering) -> None:
    asked: list[DescribeAclsRequest] = []

    def answer(request: Message) -> Message:
        assert isinstance(request, DescribeAclsRequest)
        asked.append(request)
        acls = [AclDescription("User:bob", "*", 4, 3), AclDescription("User:ada", "*", 3, 3)]
        return DescribeAclsResponse(resources=[DescribeAclsResource(2, "orders", 3, acls)])

    found = administering(answer).acls.find(AclFilter(principal="User:ada"))
    assert found[0] == RULE
    assert [one.principal for one in found] == ["User:ada", "User:bob"]
    assert (asked[0].principal_filter, asked[0].resource_name_filter) == ("User:ada", None)


def test_rules_are_added_each_with_its_outcome(administering: Administering) -> None:
    asked: list[CreateAclsRequest] = []

    def answer(request: Message) -> Message:
        assert isinstance(request, CreateAclsRequest)
        asked.append(request)
        return CreateAclsResponse(results=[AclCreationResult(), AclCreationResult(42, "no")])

    outcomes = administering(answer).acls.create([RULE, RULE])
    assert [(one.error, one.message) for one in outcomes] == [(None, ""), ("INVALID_REQUEST", "no")]
    sent = asked[0].creations[0]
    assert (sent.resource_type, sent.operation, sent.permission_type) == (2, 3, 3)


def test_removed_rules_are_returned(administering: Administering) -> None:
    def answer(request: Message) -> Message:
        assert isinstance(request, DeleteAclsRequest)
        match = DeleteAclsMatchingAcl(0, None, 2, "orders", 3, "User:ada", "*", 3, 3)
        return DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(0, None, [match])])

    assert administering(answer).acls.delete(AclFilter()) == [RULE]


def test_a_refusal_is_raised(administering: Administering) -> None:
    def answer(request: Message) -> Message:
        if isinstance(request, DescribeAclsRequest):
            return DescribeAclsResponse(error_code=54, error_message="No Authorizer")
        return DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(31, "not you")])

    admin = administering(answer)
    with pytest.raises(SecurityDisabled, match="No Authorizer"):
        admin.acls.find(AclFilter())
    with pytest.raises(ClusterAuthorizationFailed, match="not you"):
        admin.acls.delete(AclFilter())


def test_a_broker_without_the_api_has_no_authorizer(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = connected(lambda request, version: versions({3: (0, 12), 18: (0, 4)}))[0]
    monkeypatch.setattr(Cluster, "_open", lambda self, node_id: opened)
    admin = Admin("broker:9092", timeout_s=1)
    for ask in (
        lambda: admin.acls.find(AclFilter()),
        lambda: admin.acls.create([RULE]),
        lambda: admin.acls.delete(AclFilter()),
    ):
        with pytest.raises(SecurityDisabled, match="No Authorizer"):
            ask()
