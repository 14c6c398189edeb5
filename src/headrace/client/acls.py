"""Access rules by the wire: who may do what, on a cluster that has an authorizer."""

from collections.abc import Sequence
from enum import IntEnum

import msgspec

from headrace.client.cluster import ANY_NODE, Cluster, error_name
from headrace.client.descriptions import Outcome
from headrace.errors import SecurityDisabled, error_for
from headrace.protocol.message import Message
from headrace.protocol.schemas.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from headrace.protocol.schemas.delete_acls import (
    DeleteAclsFilter,
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


class ResourceType(IntEnum):
    """What a rule is about."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a rule's name is compared; MATCH and ANY only search."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """What may be done."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Whether it is allowed; a denial wins."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class AclBinding(msgspec.Struct, frozen=True, order=True):
    """One rule."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission


class AclFilter(msgspec.Struct, frozen=True):
    """Which rules are meant; None and ANY fit all."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY


class Acls:
    """The rules of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def find(self, wanted: AclFilter) -> list[AclBinding]:
        """The rules that fit, in order."""
        self._check_offered(DescribeAclsRequest)
        request = DescribeAclsRequest(*_filter_fields(wanted))

        def attempt() -> list[AclBinding]:
            answer = self._cluster.ask(request, DescribeAclsResponse)
            if answer.error_code:
                reason = answer.error_message or error_name(answer.error_code)
                raise error_for(answer.error_code, reason)
            return sorted(_described(one, acl) for one in answer.resources for acl in one.acls)

        return self._cluster.retry(attempt)

    def create(self, bindings: Sequence[AclBinding]) -> list[Outcome]:
        """Add rules; one that is there already is no error."""
        self._check_offered(CreateAclsRequest)
        request = CreateAclsRequest(creations=[_creation(one) for one in bindings])
        answer = self._cluster.ask_controller(request, CreateAclsResponse)
        return [
            Outcome(
                name=str(binding.resource_name),
                error=error_name(one.error_code) if one.error_code else None,
                message=one.error_message,
            )
            for binding, one in zip(bindings, answer.results, strict=True)
        ]

    def delete(self, wanted: AclFilter) -> list[AclBinding]:
        """Remove the rules that fit; the result is what they were."""
        self._check_offered(DeleteAclsRequest)
        request = DeleteAclsRequest(filters=[DeleteAclsFilter(*_filter_fields(wanted))])
        result = self._cluster.ask_controller(request, DeleteAclsResponse).filter_results[0]
        told = [(result.error_code, result.error_message)]
        told += [(one.error_code, one.error_message) for one in result.matching_acls]
        for code, message in told:
            if code:
                raise error_for(code, message or error_name(code))
        return sorted(map(_deleted, result.matching_acls))

    def _check_offered(self, request: type[Message]) -> None:
        """A broker that knows no rules at all has no authorizer, either."""
        if not self._cluster.connection(ANY_NODE).understands(request):
            raise SecurityDisabled("No Authorizer is configured on the broker.")


def _filter_fields(
    wanted: AclFilter,
) -> tuple[int, str | None, int, str | None, str | None, int, int]:
    return (
        wanted.resource_type,
        wanted.resource_name,
        wanted.pattern_type,
        wanted.principal,
        wanted.host,
        wanted.operation,
        wanted.permission,
    )


def _creation(binding: AclBinding) -> AclCreation:
    return AclCreation(
        resource_type=binding.resource_type,
        resource_name=binding.resource_name,
        resource_pattern_type=binding.pattern_type,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation,
        permission_type=binding.permission,
    )


def _described(resource: DescribeAclsResource, acl: AclDescription) -> AclBinding:
    return AclBinding(
        ResourceType(resource.resource_type),
        resource.resource_name,
        PatternType(resource.pattern_type),
        acl.principal,
        acl.host,
        Operation(acl.operation),
        Permission(acl.permission_type),
    )


def _deleted(acl: DeleteAclsMatchingAcl) -> AclBinding:
    return AclBinding(
        ResourceType(acl.resource_type),
        acl.resource_name,
        PatternType(acl.pattern_type),
        acl.principal,
        acl.host,
        Operation(acl.operation),
        Permission(acl.permission_type),
    )
