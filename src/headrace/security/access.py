"""The rights of one caller, as handlers ask for them.

A handler checks a right with `check`, which raises the error that Kafka answers for the type of the
resource, or with `allows`, where Kafka leaves resources out of an answer. Without an authorizer
every right is granted, and `OPEN` serves all callers.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from headrace.errors import (
    ClusterAuthorizationFailed,
    DelegationTokenAuthorizationFailed,
    GroupAuthorizationFailed,
    KafkaError,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from headrace.security.acls import CLUSTER_NAME, Operation, ResourceType
from headrace.security.principals import UNKNOWN_CALLER, Caller, Principal

REFUSALS: dict[ResourceType, type[KafkaError]] = {
    ResourceType.TOPIC: TopicAuthorizationFailed,
    ResourceType.GROUP: GroupAuthorizationFailed,
    ResourceType.CLUSTER: ClusterAuthorizationFailed,
    ResourceType.TRANSACTIONAL_ID: TransactionalIdAuthorizationFailed,
    ResourceType.DELEGATION_TOKEN: DelegationTokenAuthorizationFailed,
    ResourceType.USER: ClusterAuthorizationFailed,
}
"""The error for a missing right, by the type of the resource."""


class Authorizer(Protocol):
    """Decides by rules. Any thread may ask."""

    @property
    def version(self) -> int:
        """A number that changes when a decision may have changed."""
        ...

    def allows(
        self,
        caller: Caller,
        operation: Operation,
        kind: ResourceType,
        name: str,
        *,
        is_audited: bool = True,
    ) -> bool:
        """Return whether the caller may do an operation on a resource.

        `is_audited` is false where the caller asked for no access to that resource: a list leaves
        it out, or an answer names the operations that are allowed.
        """
        ...

    def allows_any(self, caller: Caller, operation: Operation, kind: ResourceType) -> bool:
        """Return whether the caller may do an operation on at least one resource of a type."""
        ...


class Access:
    """The rights of one caller."""

    __slots__ = ("_authorizer", "caller")

    def __init__(self, authorizer: Authorizer | None, caller: Caller = UNKNOWN_CALLER) -> None:
        self._authorizer = authorizer
        self.caller = caller

    @property
    def is_open(self) -> bool:
        """True if every right is granted because the node has no authorizer."""
        return self._authorizer is None

    @property
    def version(self) -> int:
        """The version of the rules; decisions of one version do not change."""
        return -1 if self._authorizer is None else self._authorizer.version

    def allows(
        self, operation: Operation, kind: ResourceType, name: str, *, is_audited: bool = True
    ) -> bool:
        """Return whether the caller has a right; see `Authorizer.allows` for `is_audited`."""
        authorizer = self._authorizer
        return authorizer is None or authorizer.allows(
            self.caller, operation, kind, name, is_audited=is_audited
        )

    def allows_any(self, operation: Operation, kind: ResourceType) -> bool:
        authorizer = self._authorizer
        return authorizer is None or authorizer.allows_any(self.caller, operation, kind)

    def allows_on_cluster(self, operation: Operation, *, is_audited: bool = True) -> bool:
        return self.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME, is_audited=is_audited)

    def allows_all(self, operation: Operation, kind: ResourceType, names: Iterable[str]) -> bool:
        authorizer = self._authorizer
        return authorizer is None or all(self.allows(operation, kind, name) for name in names)

    def denied(
        self, operation: Operation, kind: ResourceType, names: Iterable[str]
    ) -> Iterator[str]:
        """Yield the names without the right."""
        if self._authorizer is not None:
            yield from (name for name in names if not self.allows(operation, kind, name))

    def check(self, operation: Operation, kind: ResourceType, name: str) -> None:
        """Raise the error of the resource's type unless the caller has the right."""
        if not self.allows(operation, kind, name):
            raise refusal(self.caller, operation, kind, name)

    def check_on_cluster(self, operation: Operation) -> None:
        self.check(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def operations_on(self, kind: ResourceType, name: str, operations: Iterable[Operation]) -> int:
        """Return the granted operations as a bit field: bit n is operation n."""
        return sum(1 << one for one in operations if self.allows(one, kind, name, is_audited=False))


OPEN = Access(None)
"""The rights of every caller on a node without an authorizer."""


class Client(Protocol):
    """The fields of a connection that decide on its rights, and the rights themselves."""

    host: str
    principal: Principal
    access: Access | None


def access_of(client: Client, authorizer: Authorizer) -> Access:
    """Return the rights of a connection; they last until it authenticates as somebody else."""
    access = client.access
    if access is None or access.caller.principal is not client.principal:
        access = client.access = Access(authorizer, Caller(client.principal, client.host))
    return access


def refusal(caller: Caller, operation: Operation, kind: ResourceType, name: str) -> KafkaError:
    """Return the error for a missing right."""
    what = kind.name.lower().replace("_", " ")
    return REFUSALS[kind](f"{caller.principal} has no right to {operation.name} on {what} {name}")
