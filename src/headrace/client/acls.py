"""Access control lists over the wire, for clusters with an authorizer."""

from collections.abc import Sequence

from msgspec.structs import astuple

from headrace.client.cluster import ANY_NODE, Cluster, check_code, outcome_of
from headrace.client.descriptions import Outcome
from headrace.errors import SecurityDisabled
from headrace.protocol.message import Message
from headrace.protocol.schemas.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
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
from headrace.security.acls import (
    AclBinding,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)


class Acls:
    """The rules of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def find(self, wanted: AclFilter) -> list[AclBinding]:
        """Return the matching rules, in order."""
        self._check_offered(DescribeAclsRequest)
        request = DescribeAclsRequest(*astuple(wanted))
        answer = self._cluster.query(request, DescribeAclsResponse)
        return sorted(_binding(one, acl) for one in answer.resources for acl in one.acls)

    def create(self, bindings: Sequence[AclBinding]) -> list[Outcome]:
        """Add rules; an existing rule is accepted."""
        self._check_offered(CreateAclsRequest)
        request = CreateAclsRequest(creations=[AclCreation(*astuple(one)) for one in bindings])
        answer = self._cluster.ask_controller(request, CreateAclsResponse)
        return [
            outcome_of(binding.resource_name, one.error_code, one.error_message)
            for binding, one in zip(bindings, answer.results, strict=True)
        ]

    def delete(self, wanted: AclFilter) -> list[AclBinding]:
        """Remove the matching rules and return them."""
        self._check_offered(DeleteAclsRequest)
        request = DeleteAclsRequest(filters=[DeleteAclsFilter(*astuple(wanted))])
        result = self._cluster.ask_controller(request, DeleteAclsResponse).filter_results[0]
        check_code(result.error_code, result.error_message)
        for one in result.matching_acls:
            check_code(one.error_code, one.error_message)
        return sorted(_binding(one, one) for one in result.matching_acls)

    def _check_offered(self, request: type[Message]) -> None:
        """Treat a broker without the API like a broker without an authorizer."""
        if not self._cluster.connection(ANY_NODE).understands(request):
            raise SecurityDisabled("No Authorizer is configured on the broker.")


def _binding(
    resource: DescribeAclsResource | DeleteAclsMatchingAcl,
    acl: AclDescription | DeleteAclsMatchingAcl,
) -> AclBinding:
    return AclBinding(
        ResourceType(resource.resource_type),
        resource.resource_name,
        PatternType(resource.pattern_type),
        acl.principal,
        acl.host,
        Operation(acl.operation),
        Permission(acl.permission_type),
    )
