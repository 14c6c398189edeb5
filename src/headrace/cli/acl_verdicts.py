"""`headrace acls explain`: the decision of a cluster's authorizer, computed from its rules."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from headrace.cli.acl_rules import Resource, kind_text, operation_text, rule_text
from headrace.cli.resource_options import principal_named
from headrace.protocol.schemas.records.metadata import AccessControlEntryRecord
from headrace.security.acls import AclBinding, Operation, ResourceType
from headrace.security.authorizer import Reason, StandardAuthorizer, Verdict, parse_super_users
from headrace.security.principals import Caller, Principal, parse_principal

if TYPE_CHECKING:
    from headrace.client.admin import Admin

_SUPER_USERS = "super.users"
_ALLOW_EVERYONE = "allow.everyone.if.no.acl.found"


class Exceptions(msgspec.Struct, frozen=True):
    """The settings of the brokers that decide before and after the rules."""

    super_users: frozenset[str] = frozenset()
    allow_everyone: bool = False
    is_hidden: bool = False
    """True if the brokers do not show them, as Kafka does not."""


def read_exceptions(admin: "Admin", super_users: Iterable[str]) -> Exceptions:
    """Read the settings of a broker; the given super users are added."""
    broker = min(one.id for one in admin.nodes.brokers())
    entries = {one.name: one for one in admin.configs.describe("broker", str(broker))}
    users, everyone = entries.get(_SUPER_USERS), entries.get(_ALLOW_EVERYONE)
    shown = (users.value if users is not None else None) or ""
    given = {principal_named(one) for one in super_users}
    return Exceptions(
        parse_super_users(shown) | given,
        everyone is not None and everyone.value == "true",
        any(one is not None and one.is_sensitive for one in (users, everyone)),
    )


def caller_of(principal: str, groups: Sequence[str], host: str) -> Caller:
    """Return the caller that the command line describes."""
    found = parse_principal(principal_named(principal))
    return Caller(Principal(found.type, found.name, groups=tuple(groups)), host)


def verdict_of(
    rules: Iterable[AclBinding],
    exceptions: Exceptions,
    caller: Caller,
    operation: Operation,
    resource: Resource,
) -> Verdict:
    """Return the decision of an authorizer with these rules."""
    authorizer = StandardAuthorizer(
        exceptions.super_users, allow_everyone=exceptions.allow_everyone
    )
    authorizer.update({number.to_bytes(16): _record(one) for number, one in enumerate(rules)})
    return authorizer.decide(caller, operation, *resource)


def verdict_text(verdict: Verdict, caller: Caller, operation: Operation, resource: Resource) -> str:
    """Describe a decision and its cause."""
    kind, name = resource
    where = "the cluster" if kind is ResourceType.CLUSTER else f"{kind_text(kind)} {name}"
    may = "may" if verdict.is_allowed else "may not"
    asked = f"{caller.principal} {may} {operation_text(operation)} on {where} from {caller.host}"
    return f"{asked}: {cause_text(verdict)}"


def cause_text(verdict: Verdict) -> str:
    """Describe the rule or the setting behind a decision."""
    if verdict.rule is not None:
        return f"a rule {rule_text(verdict.rule)}"
    if verdict.cause is Reason.SUPER_USER:
        return f"it is one of {_SUPER_USERS}"
    assert isinstance(verdict.cause, Reason)
    return str(verdict.cause.value)


def _record(rule: AclBinding) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        resource_type=rule.resource_type,
        resource_name=rule.resource_name,
        pattern_type=rule.pattern_type,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )
