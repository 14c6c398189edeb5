"""Roles: named sets of rights, which are stored as plain access control rules.

A role lists operations by type of resource. To grant it means to add a rule for each operation on
each named resource, so Kafka's tools show and change the same rules. Nothing else is stored: a
principal has a role if it has all rules of the role on at least one resource of each type.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from headrace.cli.acl_rules import OPERATIONS, kind_text, operation_named
from headrace.cli.resource_options import OPTIONS
from headrace.security.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

_KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.CLUSTER,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user": ResourceType.USER,
}


class Role(msgspec.Struct, frozen=True):
    """A named set of rights."""

    name: str
    summary: str
    rights: Mapping[ResourceType, tuple[Operation, ...]]
    optional: frozenset[ResourceType] = frozenset()
    """Types of resources without which a principal has the role, too."""


class Scope(msgspec.Struct, frozen=True, order=True):
    """One resource, or all with a prefix, on which a role is granted."""

    kind: ResourceType
    name: str
    pattern: PatternType


class Holder(msgspec.Struct, frozen=True):
    """A principal that has a role, from some hosts and on some resources."""

    role: str
    principal: str
    host: str
    scopes: tuple[Scope, ...]
    denials: int
    """Rules that deny this principal something, which take precedence."""


BUILT_IN = (
    Role(
        "viewer",
        "Sees topics, groups and configs, and reads no records.",
        {
            ResourceType.TOPIC: (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS),
            ResourceType.GROUP: (Operation.DESCRIBE,),
            ResourceType.CLUSTER: (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS),
        },
    ),
    Role(
        "producer",
        "Writes to topics, which it may create.",
        {
            ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
            ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
        },
        frozenset((ResourceType.TRANSACTIONAL_ID,)),
    ),
    Role(
        "consumer",
        "Reads topics as a member of groups.",
        {
            ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
            ResourceType.GROUP: (Operation.READ,),
        },
    ),
    Role(
        "operator",
        "Creates, changes and deletes topics, groups and configs, and reads no records.",
        {
            ResourceType.TOPIC: (
                Operation.CREATE,
                Operation.DELETE,
                Operation.ALTER,
                Operation.DESCRIBE,
                Operation.DESCRIBE_CONFIGS,
                Operation.ALTER_CONFIGS,
            ),
            ResourceType.GROUP: (
                Operation.DELETE,
                Operation.DESCRIBE,
                Operation.DESCRIBE_CONFIGS,
                Operation.ALTER_CONFIGS,
            ),
            ResourceType.CLUSTER: (
                Operation.DESCRIBE,
                Operation.DESCRIBE_CONFIGS,
                Operation.ALTER_CONFIGS,
            ),
        },
    ),
    Role(
        "admin",
        "May do everything, also change rules and users.",
        dict.fromkeys(_KINDS.values(), (Operation.ALL,)),
        frozenset(
            (
                ResourceType.TRANSACTIONAL_ID,
                ResourceType.DELEGATION_TOKEN,
                ResourceType.USER,
            )
        ),
    ),
)
"""Roles of every cluster. Operators lack ALTER on the cluster, which would let them add rules."""


def read_roles(path: Path | None) -> dict[str, Role]:
    """Return the built-in roles, and those of a TOML file."""
    roles = {role.name: role for role in BUILT_IN}
    if path is None:
        return roles
    try:
        document = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise click.UsageError(f"{path}: {error}") from error
    for name, fields in document.items():
        try:
            roles[name] = _role(name, fields)
        except (ValueError, click.BadParameter) as error:
            raise click.UsageError(f"{path}: role {name}: {error}") from error
    return roles


def role_named(name: str, roles: Mapping[str, Role]) -> Role:
    role = roles.get(name)
    if role is None:
        raise click.UsageError(f"there is no role {name}; there are {', '.join(roles)}")
    return role


def scopes_of(
    role: Role,
    named: Mapping[ResourceType, Sequence[str]],
    *,
    is_prefixed: bool,
    is_everywhere: bool,
) -> list[Scope]:
    """Return the resources of a grant; raise if the command line does not fit the role."""
    for kind, names in named.items():
        if names and kind not in role.rights:
            raise click.UsageError(f"the role {role.name} has no rights on a {kind_text(kind)}")
    scopes = []
    for kind in role.rights:
        names = (CLUSTER_NAME,) if kind is ResourceType.CLUSTER else named.get(kind, ())
        if not names and is_everywhere:
            names = (WILDCARD,)
        if not names and kind not in role.optional:
            raise click.UsageError(
                f"the role {role.name} has rights on each {kind_text(kind)}: name it by "
                f"{OPTIONS[kind]}, or use --everywhere"
            )
        is_prefix = is_prefixed and kind is not ResourceType.CLUSTER
        scopes += [
            Scope(
                kind,
                name,
                PatternType.PREFIXED if is_prefix and name != WILDCARD else PatternType.LITERAL,
            )
            for name in names
        ]
    return scopes


def rules_of(role: Role, scopes: Iterable[Scope], principal: str, host: str) -> list[AclBinding]:
    """Return the rules by which a principal has a role."""
    return [
        AclBinding(one.kind, one.name, one.pattern, principal, host, operation, Permission.ALLOW)
        for one in scopes
        for operation in role.rights[one.kind]
    ]


def holders_of(role: Role, rules: Iterable[AclBinding]) -> list[Holder]:
    """Return the principals that have all rules of a role on some resources."""
    granted: dict[tuple[str, str], dict[Scope, set[Operation]]] = {}
    denials: dict[str, int] = {}
    for rule in rules:
        if rule.permission is Permission.DENY:
            denials[rule.principal] = denials.get(rule.principal, 0) + 1
        elif rule.permission is Permission.ALLOW:
            scope = Scope(rule.resource_type, rule.resource_name, rule.pattern_type)
            by_scope = granted.setdefault((rule.principal, rule.host), {})
            by_scope.setdefault(scope, set()).add(rule.operation)
    holders = []
    for (principal, host), by_scope in sorted(granted.items()):
        scopes = [one for one in sorted(by_scope) if _covers(role, one.kind, by_scope[one])]
        if role.rights.keys() - role.optional <= {one.kind for one in scopes}:
            count = denials.get(principal, 0)
            holders.append(Holder(role.name, principal, host, tuple(scopes), count))
    return holders


def kept_rules(
    role: Role,
    revoked: Sequence[AclBinding],
    roles: Iterable[Role],
    rules: Sequence[AclBinding],
) -> set[AclBinding]:
    """Return the rules of a revoked role that another role of the principal needs.

    A role with no right beyond the revoked one keeps nothing: it was probably never granted.
    """
    kept: set[AclBinding] = set()
    for other in roles:
        if other.name == role.name:
            continue
        for holder in holders_of(other, rules):
            scopes = [one for one in holder.scopes if _has_more(other, role, one.kind)]
            kept.update(rules_of(other, scopes, holder.principal, holder.host))
    return kept.intersection(revoked)


def scope_text(scope: Scope) -> str:
    """Describe a resource in few words."""
    if scope.kind is ResourceType.CLUSTER:
        return "cluster"
    kind = kind_text(scope.kind)
    if scope.name == WILDCARD and scope.pattern is PatternType.LITERAL:
        return f"every {kind}"
    ending = "*" if scope.pattern is PatternType.PREFIXED else ""
    return f"{kind} {scope.name}{ending}"


def _covers(role: Role, kind: ResourceType, held: set[Operation]) -> bool:
    wanted = role.rights.get(kind)
    return wanted is not None and (Operation.ALL in held or held.issuperset(wanted))


def _has_more(other: Role, role: Role, kind: ResourceType) -> bool:
    return not set(other.rights[kind]) <= set(role.rights.get(kind, ()))


def _role(name: str, fields: Any) -> Role:
    if not isinstance(fields, dict):
        raise ValueError("must be a table with operations by type of resource")
    rights = {}
    for key, value in fields.items():
        if key in ("summary", "optional"):
            continue
        if key not in _KINDS:
            raise ValueError(f"{key} is not a type of resource; there are {', '.join(_KINDS)}")
        rights[_KINDS[key]] = tuple(_operations(_KINDS[key], value))
    if not rights:
        raise ValueError("has no rights")
    optional = fields.get("optional", [])
    if not set(optional) <= fields.keys() & _KINDS.keys():
        raise ValueError("optional lists types of resources of the role")
    summary = str(fields.get("summary", ""))
    return Role(name, summary, rights, frozenset(_KINDS[one] for one in optional))


def _operations(kind: ResourceType, names: Any) -> Iterator[Operation]:
    if not isinstance(names, list) or not names:
        raise ValueError(f"the operations on a {kind_text(kind)} must be a list")
    for name in names:
        operation = operation_named(str(name))
        if operation is not Operation.ALL and operation not in OPERATIONS[kind]:
            raise ValueError(f"{name} does not apply to a {kind_text(kind)}")
        yield operation
