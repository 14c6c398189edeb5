"""The vocabulary of access control lists, with the numbers of Kafka's protocol."""

from enum import IntEnum
from typing import TYPE_CHECKING, Self

import msgspec

if TYPE_CHECKING:
    from headrace.protocol.schemas.records.metadata import AccessControlEntryRecord


class _Code(IntEnum):
    """A number of the protocol; numbers of newer releases become UNKNOWN, which is 0."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls(0) if isinstance(value, int) and value else None


class ResourceType(_Code):
    """Type of the resource that a rule applies to."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Code):
    """Matching of a rule's name; MATCH and ANY are for searches only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(_Code):
    """Operation that a rule allows or denies."""

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


CLUSTER_OPERATIONS = (
    Operation.CREATE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
    Operation.ALTER,
    Operation.DESCRIBE,
)
"""The operations that the cluster has, as answers list them."""


class Permission(_Code):
    """Allow or deny; a denial takes precedence."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


WILDCARD = "*"
"""The name of a rule for every resource of a type, and the host of a rule for every host."""

CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""


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
    """Filter of rules; None and ANY match all."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    @property
    def is_unknown(self) -> bool:
        """True if a part of the filter has a number of no meaning."""
        return 0 in (self.resource_type, self.pattern_type, self.operation, self.permission)

    def matches(self, binding: AclBinding) -> bool:
        """Return whether a rule matches, as Kafka defines it."""
        return (
            self._matches_resource(binding)
            and self.principal in (None, binding.principal)
            and self.host in (None, binding.host)
            and self.operation in (Operation.ANY, binding.operation)
            and self.permission in (Permission.ANY, binding.permission)
        )

    def _matches_resource(self, binding: AclBinding) -> bool:
        if self.resource_type not in (ResourceType.ANY, binding.resource_type):
            return False
        wanted, given, name = self.pattern_type, binding.pattern_type, self.resource_name
        if wanted not in (PatternType.ANY, PatternType.MATCH, given):
            return False
        if name is None or name == binding.resource_name:
            return True
        if wanted is not PatternType.MATCH:
            return False
        if given is PatternType.LITERAL:
            return binding.resource_name == WILDCARD
        return given is PatternType.PREFIXED and name.startswith(binding.resource_name)


def binding_in(record: "AccessControlEntryRecord") -> AclBinding:
    """Return the rule in a record of the metadata."""
    return AclBinding(
        ResourceType(record.resource_type),
        record.resource_name,
        PatternType(record.pattern_type),
        record.principal,
        record.host,
        Operation(record.operation),
        Permission(record.permission_type),
    )
