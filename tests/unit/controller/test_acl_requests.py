"""CreateAcls, DeleteAcls and DescribeAcls: records, results and the errors of single items."""

import pytest

from headrace.controller.acl_requests import describe_acls
from headrace.controller.decision import Decision
from headrace.controller.requests import decide
from headrace.errors import (
    ClusterAuthorizationFailed,
    InvalidRequest,
    PolicyViolation,
    SecurityDisabled,
)
from headrace.metadata.image import MetadataImage
from headrace.protocol.message import Message
from headrace.protocol.schemas.create_acls import AclCreation, CreateAclsRequest
from headrace.protocol.schemas.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from headrace.protocol.schemas.describe_acls import DescribeAclsRequest
from headrace.protocol.schemas.records.metadata import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)
from headrace.security.access import OPEN
from headrace.security.acls import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from tests.builders.authorizers import ListedRights, access_of
from tests.builders.metadata_images import applied, image_with
from tests.unit.controller.test_requests import context_of

ALTER = ListedRights((Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME))
DESCRIBE = ListedRights((Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME))
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ, ALLOW = Operation.READ, Permission.ALLOW


def creation(
    name: str = "orders",
    *,
    kind: int = TOPIC,
    pattern: int = LITERAL,
    principal: str = "User:ada",
    host: str = "*",
    operation: int = READ,
    permission: int = ALLOW,
) -> AclCreation:
    return AclCreation(kind, name, pattern, principal, host, operation, permission)


def decided(image: MetadataImage, request: Message, rights: ListedRights = ALTER) -> Decision:  # type: ignore[type-arg]  # The reply differs from request to request.
    context = context_of(request)._replace(access=access_of("admin", rights))
    return decide(image, request, context)


def image_of(*creations: AclCreation) -> MetadataImage:
    image = image_with()
    return applied(image, decided(image, CreateAclsRequest(list(creations))))


def names_in(image: MetadataImage) -> list[str]:
    return sorted(one.resource_name for one in image.acls.values())


class TestCreation:
    def test_a_rule_becomes_a_record(self) -> None:
        """SEC-7"""
        decision = decided(image_with(), CreateAclsRequest([creation()]))

        (record,) = (one.message for one in decision.records)
        assert isinstance(record, AccessControlEntryRecord)
        assert len(set(record.id)) > 1
        assert [one.error_code for one in decision.reply.results] == [0]

    def test_a_rule_that_exists_is_not_created_again(self) -> None:
        image = image_of(creation())

        decision = decided(image, CreateAclsRequest([creation(), creation("new"), creation("new")]))

        assert [one.error_code for one in decision.reply.results] == [0, 0, 0]
        assert names_in(applied(image, decision)) == ["new", "orders"]

    @pytest.mark.parametrize(
        ("wrong", "reason"),
        [
            (creation(kind=ResourceType.ANY), "resource type ANY"),
            (creation(kind=99), "resource type UNKNOWN"),
            (creation(pattern=PatternType.MATCH), "pattern type MATCH"),
            (creation(operation=Operation.ANY), "operation ANY"),
            (creation(permission=Permission.UNKNOWN), "permission UNKNOWN"),
            (creation(""), "must not be empty"),
            (creation(host=""), "host must not be empty"),
            (creation("other", kind=ResourceType.CLUSTER), CLUSTER_NAME),
            (creation(principal="ada"), "User:name"),
            (creation("n" * 40_000), "at most"),
        ],
    )
    def test_an_invalid_rule_fails_alone(self, wrong: AclCreation, reason: str) -> None:
        decision = decided(image_with(), CreateAclsRequest([wrong, creation()]))

        failed, created = decision.reply.results
        assert (failed.error_code, created.error_code) == (InvalidRequest.code, 0)
        assert reason in failed.error_message
        assert len(decision.records) == 1

    def test_too_many_rules_at_once_are_refused(self) -> None:
        request = CreateAclsRequest([creation(f"t{number}") for number in range(10_001)])
        with pytest.raises(PolicyViolation, match="creating these rules"):
            decided(image_with(), request)

    def test_the_right_to_alter_the_cluster_is_needed(self) -> None:
        with pytest.raises(ClusterAuthorizationFailed):
            decided(image_with(), CreateAclsRequest([creation()]), DESCRIBE)

    def test_without_an_authorizer_there_are_no_rules(self) -> None:
        request = CreateAclsRequest([creation()])
        with pytest.raises(SecurityDisabled, match="No Authorizer"):
            decide(image_with(), request, context_of(request))


class TestDeletion:
    def test_rules_that_match_any_filter_are_removed_once(self) -> None:
        """SEC-7"""
        image = image_of(creation(), creation("bills"), creation("g", kind=GROUP))
        of_topics = DeleteAclsFilter(TOPIC, None, PatternType.ANY, None, None, 1, 1)
        orders = DeleteAclsFilter(TOPIC, "orders", LITERAL, None, None, 1, 1)

        decision = decided(image, DeleteAclsRequest([of_topics, orders]))

        kinds = {type(one.message) for one in decision.records}
        assert kinds == {RemoveAccessControlEntryRecord}
        counts = [len(one.matching_acls) for one in decision.reply.filter_results]
        assert counts == [2, 1]
        assert names_in(applied(image, decision)) == ["g"]

    def test_a_filter_with_match_finds_all_patterns_of_a_name(self) -> None:
        image = image_of(
            creation(), creation("*"), creation("or", pattern=PREFIXED), creation("bills")
        )
        wanted = DeleteAclsFilter(TOPIC, "orders", PatternType.MATCH, None, None, 1, 1)

        decision = decided(image, DeleteAclsRequest([wanted]))

        assert names_in(applied(image, decision)) == ["bills"]

    def test_an_unknown_filter_fails_alone(self) -> None:
        image = image_of(creation())
        unknown = DeleteAclsFilter(TOPIC, None, 77, None, None, 1, 1)
        orders = DeleteAclsFilter(TOPIC, "orders", LITERAL, "User:ada", "*", READ, ALLOW)

        decision = decided(image, DeleteAclsRequest([unknown, orders]))

        codes = [one.error_code for one in decision.reply.filter_results]
        assert codes == [InvalidRequest.code, 0]
        assert len(decision.records) == 1


class TestDescription:
    def test_rules_are_grouped_by_resource(self) -> None:
        image = image_of(
            creation(), creation(operation=Operation.WRITE), creation("or", pattern=PREFIXED)
        )
        request = DescribeAclsRequest(TOPIC, None, PatternType.ANY, None, None, 1, 1)

        answer = describe_acls(image, request, access_of("ada", DESCRIBE))

        found = {(one.resource_name, one.pattern_type): len(one.acls) for one in answer.resources}
        assert found == {("orders", LITERAL): 2, ("or", PREFIXED): 1}

    def test_every_field_of_a_filter_counts(self) -> None:
        image = image_of(
            creation(),
            creation(principal="User:bob"),
            creation(host="10.0.0.7"),
            creation(permission=Permission.DENY),
            creation(operation=Operation.WRITE),
        )
        request = DescribeAclsRequest(TOPIC, "orders", LITERAL, "User:ada", "*", READ, ALLOW)

        (resource,) = describe_acls(image, request, access_of("ada", DESCRIBE)).resources

        assert len(resource.acls) == 1

    def test_unknown_filters_and_missing_rights_are_refused(self) -> None:
        unknown = DescribeAclsRequest(99, None, LITERAL, None, None, 1, 1)
        with pytest.raises(InvalidRequest):
            describe_acls(image_with(), unknown, access_of("ada", DESCRIBE))
        with pytest.raises(ClusterAuthorizationFailed):
            describe_acls(image_with(), unknown, access_of("ada", ListedRights()))
        with pytest.raises(SecurityDisabled):
            describe_acls(image_with(), unknown, OPEN)
