"""CreateAcls, DeleteAcls and DescribeAcls, from request to response.

A rule that exists already is not created a second time. Rules and filters fail one by one.
"""

from headrace.controller.decision import Decision, check_size
from headrace.controller.requests import Context
from headrace.errors import InvalidRequest, KafkaError, PolicyViolation, SecurityDisabled
from headrace.metadata.image import MetadataImage
from headrace.metadata.records import VersionedRecord
from headrace.protocol.schemas.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from headrace.protocol.schemas.delete_acls import (
    DeleteAclsFilter,
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
from headrace.protocol.schemas.records.metadata import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)
from headrace.protocol.uuids import Uuid, random_uuid
from headrace.security.access import Access
from headrace.security.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    binding_in,
)
from headrace.security.principals import parse_principal

_TEXT_SIZE_MAX = 32_767
"""Older versions of DescribeAcls cannot return longer texts."""

_COMPARISONS_MAX = 20_000_000
"""Comparisons of filters with rules in one request, which delay all other requests."""


def create_acls(
    image: MetadataImage, request: CreateAclsRequest, context: Context
) -> Decision[CreateAclsResponse]:
    _check_enabled(context.access)
    names = {one.resource_name for one in request.creations}
    present = {binding_in(one) for one in image.acls.values() if one.resource_name in names}
    records: list[VersionedRecord] = []
    results = []
    for creation in request.creations:
        record = _record(creation)
        try:
            binding = _checked(binding_in(record))
        except KafkaError as error:
            results.append(AclCreationResult(error.code, str(error)))
            continue
        results.append(AclCreationResult(error_message=None))
        if binding not in present:
            present.add(binding)
            records.append(VersionedRecord(record))
    check_size(records, "creating these rules")
    return Decision(records, CreateAclsResponse(results=results))


def _record(creation: AclCreation) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        random_uuid(),
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def _checked(rule: AclBinding) -> AclBinding:
    """Return a new rule; raise if it is invalid."""
    if rule.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        raise InvalidRequest(f"invalid resource type {rule.resource_type.name}")
    if rule.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise InvalidRequest(f"invalid pattern type {rule.pattern_type.name}")
    if rule.operation in (Operation.UNKNOWN, Operation.ANY):
        raise InvalidRequest(f"invalid operation {rule.operation.name}")
    if rule.permission not in (Permission.ALLOW, Permission.DENY):
        raise InvalidRequest(f"invalid permission {rule.permission.name}")
    if not rule.resource_name:
        raise InvalidRequest("the name of a resource must not be empty")
    if rule.resource_type is ResourceType.CLUSTER and rule.resource_name != CLUSTER_NAME:
        raise InvalidRequest(f"the only valid name of the resource CLUSTER is {CLUSTER_NAME}")
    if not rule.host:
        raise InvalidRequest("the host must not be empty; * is every host")
    try:
        parse_principal(rule.principal)
    except ValueError as error:
        raise InvalidRequest(str(error)) from error
    for text in (rule.resource_name, rule.principal, rule.host):
        if len(text.encode()) > _TEXT_SIZE_MAX:
            raise InvalidRequest(f"a text of a rule has at most {_TEXT_SIZE_MAX} bytes")
    return rule


def delete_acls(
    image: MetadataImage, request: DeleteAclsRequest, context: Context
) -> Decision[DeleteAclsResponse]:
    _check_enabled(context.access)
    rules = _Rules(image)
    removed: dict[Uuid, None] = {}
    results = []
    for one in request.filters:
        try:
            found = rules.matching(_valid(_filter(one)))
        except InvalidRequest as error:
            results.append(DeleteAclsFilterResult(error.code, str(error)))
            continue
        removed |= dict.fromkeys(key for key, _ in found)
        matching = [_removed(binding) for _, binding in found]
        results.append(DeleteAclsFilterResult(error_message=None, matching_acls=matching))
    records = [VersionedRecord(RemoveAccessControlEntryRecord(key)) for key in removed]
    check_size(records, "deleting these rules")
    return Decision(records, DeleteAclsResponse(filter_results=results))


class _Rules:
    """The rules of an image, for many filters."""

    def __init__(self, image: MetadataImage) -> None:
        self._all = [(key, binding_in(one)) for key, one in image.acls.items()]
        self._by_name: dict[str, list[tuple[Uuid, AclBinding]]] = {}
        for row in self._all:
            self._by_name.setdefault(row[1].resource_name, []).append(row)
        self._comparisons = 0

    def matching(self, wanted: AclFilter) -> list[tuple[Uuid, AclBinding]]:
        name, rows = wanted.resource_name, self._all
        if name is not None and wanted.pattern_type is not PatternType.MATCH:
            rows = self._by_name.get(name, [])
        self._comparisons += len(rows)
        if self._comparisons > _COMPARISONS_MAX:
            raise PolicyViolation(
                "the filters of the request match too many rules; split it into several requests"
            )
        return [row for row in rows if wanted.matches(row[1])]


def _removed(rule: AclBinding) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=rule.resource_type,
        resource_name=rule.resource_name,
        pattern_type=rule.pattern_type,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )


def describe_acls(
    image: MetadataImage, request: DescribeAclsRequest, access: Access
) -> DescribeAclsResponse:
    """Return the rules that match a filter, by resource."""
    access.check_on_cluster(Operation.DESCRIBE)
    _check_enabled(access)
    wanted = _valid(_filter(request))
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for rule in map(binding_in, image.acls.values()):
        if not wanted.matches(rule):
            continue
        key = rule.resource_type, rule.resource_name, rule.pattern_type
        if key not in resources:
            resources[key] = DescribeAclsResource(*key)
        resources[key].acls.append(
            AclDescription(rule.principal, rule.host, rule.operation, rule.permission)
        )
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))


def _filter(one: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        ResourceType(one.resource_type_filter),
        one.resource_name_filter,
        PatternType(one.pattern_type_filter),
        one.principal_filter,
        one.host_filter,
        Operation(one.operation),
        Permission(one.permission_type),
    )


def _valid(wanted: AclFilter) -> AclFilter:
    if wanted.is_unknown:
        raise InvalidRequest("a filter with an unknown type, pattern, operation or permission")
    return wanted


def _check_enabled(access: Access) -> None:
    if access.is_open:
        raise SecurityDisabled(
            "No Authorizer is configured; set authorizer.class.name on every node"
        )
