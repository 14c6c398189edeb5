"""Options of `headrace acls` as rules and filters, with the names of kafka-acls.

`--producer` and `--consumer` stand for the rights that kafka-acls grants by them.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import click
import msgspec

from headrace.cli.resource_options import OPTIONS, NamedResources, principal_named
from headrace.security.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from headrace.security.principals import USER

Resource = tuple[ResourceType, str]

OPERATIONS: dict[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        Operation.WRITE,
        Operation.DESCRIBE,
        Operation.TWO_PHASE_COMMIT,
    ),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""The operations of each type of resource, besides `All`."""

_PRODUCER = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
_CONSUMER = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}


class ResourceOptions(NamedResources, frozen=True):
    """The resources that a command line names."""

    on_cluster: bool = False

    @property
    def resources(self) -> list[Resource]:
        found = [(kind, name) for kind, names in self.names.items() for name in names]
        return [*found, (ResourceType.CLUSTER, CLUSTER_NAME)] if self.on_cluster else found


class RuleOptions(msgspec.Struct, frozen=True):
    """The rights that a command line names, and their owners."""

    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    operations: tuple[Operation, ...] = ()
    as_producer: bool = False
    as_consumer: bool = False
    is_idempotent: bool = False
    is_prefixed: bool = False

    @property
    def is_shortcut(self) -> bool:
        return self.as_producer or self.as_consumer

    @property
    def pattern_type(self) -> PatternType:
        return PatternType.PREFIXED if self.is_prefixed else PatternType.LITERAL

    @property
    def names_rights(self) -> bool:
        """True if only some of the rules of a resource are meant."""
        given = (self.allowed, self.denied, self.hosts, self.operations)
        return any(given) or self.is_shortcut


def operation_named(text: str) -> Operation:
    """Parse the name of an operation: `DescribeConfigs` or `describe-configs`."""
    wanted = text.replace("-", "").replace("_", "").upper()
    for one in Operation:
        if one > Operation.ANY and one.name.replace("_", "") == wanted:
            return one
    names = ", ".join(operation_text(one) for one in Operation if one > Operation.ANY)
    raise click.BadParameter(f"{text!r} is not an operation; use one of {names}")


def operation_text(operation: Operation) -> str:
    """Return an operation's name as kafka-acls writes it."""
    return operation.name.title().replace("_", "")


def kind_text(kind: ResourceType) -> str:
    """Return a type of resources in words."""
    return kind.name.lower().replace("_", " ")


def rule_text(rule: AclBinding) -> str:
    """Describe a rule in one line."""
    effect = "allows" if rule.permission == Permission.ALLOW else "denies"
    who = "everyone" if rule.principal == f"{USER}:{WILDCARD}" else rule.principal
    where = "every host" if rule.host == WILDCARD else rule.host
    return f"{effect} {who} {operation_text(rule.operation)} on {_scope(rule)} from {where}"


def rules_of(named: ResourceOptions, options: RuleOptions) -> list[AclBinding]:
    """Return the rules to add; raise if the command line is incomplete."""
    if not options.allowed and not options.denied:
        raise click.UsageError(
            "name the owner of the rights: --allow-principal or --deny-principal"
        )
    rights = list(rights_of(named, options))
    return [
        AclBinding(kind, name, options.pattern_type, principal, host, operation, permission)
        for (kind, name, operation) in dict.fromkeys(rights)
        for (permission, principal), host in product(_owners(options), options.hosts or (WILDCARD,))
    ]


def filters_of(named: ResourceOptions, options: RuleOptions) -> list[AclFilter]:
    """Return filters for the rules to remove; a resource alone means all of its rules."""
    if not options.names_rights:
        _check_resources(named)
        return [AclFilter(kind, name, options.pattern_type) for kind, name in named.resources]
    rights = dict.fromkeys(_removed_rights(named, options))
    owners: Sequence[tuple[Permission, str | None]] = _owners(options)
    return [
        AclFilter(kind, name, options.pattern_type, principal, host, operation, permission)
        for (kind, name, operation) in rights
        for (permission, principal), host in product(
            owners or [(Permission.ANY, None)], options.hosts or (None,)
        )
    ]


def searches_of(
    named: ResourceOptions, principals: Sequence[str], pattern_type: PatternType
) -> list[AclFilter]:
    """Return filters for the rules to list; nothing given means all rules."""
    resources: Sequence[tuple[ResourceType, str | None]] = named.resources
    return [
        AclFilter(kind, name, pattern_type, principal and principal_named(principal))
        for (kind, name), principal in product(
            resources or [(ResourceType.ANY, None)], principals or (None,)
        )
    ]


def only_resource(named: ResourceOptions, operation: Operation) -> Resource:
    """Return the one resource of a question about an operation."""
    _check_resources(named)
    if len(named.resources) > 1:
        raise click.UsageError("name one resource")
    _check_operation(named.resources[0][0], operation)
    return named.resources[0]


def rights_of(
    named: ResourceOptions, options: RuleOptions
) -> Iterator[tuple[ResourceType, str, Operation]]:
    """Yield each operation on each resource."""
    if options.is_shortcut:
        yield from _shortcut_rights(named, options)
        return
    if options.is_idempotent:
        raise click.UsageError("--idempotent belongs to --producer")
    _check_resources(named)
    for (kind, name), operation in product(named.resources, options.operations or (Operation.ALL,)):
        _check_operation(kind, operation)
        yield kind, name, operation


def _removed_rights(
    named: ResourceOptions, options: RuleOptions
) -> Iterator[tuple[ResourceType, str, Operation]]:
    """Yield the rights to remove: without an operation those of every one."""
    if options.is_shortcut or options.operations:
        yield from rights_of(named, options)
        return
    _check_resources(named)
    for kind, name in named.resources:
        yield kind, name, Operation.ANY


def _shortcut_rights(
    named: ResourceOptions, options: RuleOptions
) -> Iterator[tuple[ResourceType, str, Operation]]:
    _check_shortcut(named, options)
    tables = [
        *([_PRODUCER] if options.as_producer else []),
        *([_CONSUMER] if options.as_consumer else []),
    ]
    for table, (kind, name) in product(tables, named.resources):
        for operation in table.get(kind, ()):
            yield kind, name, operation
    if options.is_idempotent:
        yield ResourceType.CLUSTER, CLUSTER_NAME, Operation.IDEMPOTENT_WRITE


def _check_shortcut(named: ResourceOptions, options: RuleOptions) -> None:
    if options.operations or options.denied:
        raise click.UsageError(
            "--producer and --consumer grant the rights that clients need: leave out --operation"
            " and --deny-principal"
        )
    if not named.topics:
        raise click.UsageError("--producer and --consumer need --topic")
    if options.as_consumer and not named.groups:
        raise click.UsageError("--consumer needs --group, which may be '*'")
    if options.is_idempotent and not options.as_producer:
        raise click.UsageError("--idempotent belongs to --producer")
    usable = {ResourceType.TOPIC}
    usable |= {ResourceType.TRANSACTIONAL_ID} if options.as_producer else set()
    usable |= {ResourceType.GROUP} if options.as_consumer else set()
    for kind, _ in named.resources:
        if kind not in usable:
            raise click.UsageError(f"{OPTIONS[kind]} has no effect here; add it by --operation")


def _check_operation(kind: ResourceType, operation: Operation) -> None:
    if operation != Operation.ALL and operation not in OPERATIONS[kind]:
        names = ", ".join(map(operation_text, (*OPERATIONS[kind], Operation.ALL)))
        raise click.UsageError(
            f"{operation_text(operation)} does not apply to {OPTIONS[kind]}; its operations are"
            f" {names}"
        )


def _check_resources(named: ResourceOptions) -> None:
    if not named.resources:
        raise click.UsageError(f"name a resource: {', '.join(OPTIONS.values())}")


def _owners(options: RuleOptions) -> list[tuple[Permission, str]]:
    return [*_each(Permission.ALLOW, options.allowed), *_each(Permission.DENY, options.denied)]


def _each(permission: Permission, principals: Iterable[str]) -> Iterator[tuple[Permission, str]]:
    for principal in principals:
        yield permission, principal_named(principal)


def _scope(rule: AclBinding) -> str:
    if rule.resource_type == ResourceType.CLUSTER:
        return "the cluster"
    kind = kind_text(rule.resource_type)
    if rule.pattern_type == PatternType.PREFIXED:
        return f"each {kind} that begins with {rule.resource_name}"
    return f"every {kind}" if rule.resource_name == WILDCARD else f"{kind} {rule.resource_name}"
