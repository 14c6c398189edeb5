"""`headrace acls`: list, add, remove and explain the rules of who may do what on a cluster."""

from collections.abc import Callable
from typing import Any

import click

from headrace.cli.acl_rules import (
    ResourceOptions,
    RuleOptions,
    filters_of,
    kind_text,
    only_resource,
    operation_named,
    operation_text,
    rule_text,
    rules_of,
    searches_of,
)
from headrace.cli.options import ClusterOptions, admin_options, confirm, options_as, yes_option
from headrace.cli.output import counted, print_json, print_line, print_table, report, warn
from headrace.cli.resource_options import name_options
from headrace.client.acls import Acls
from headrace.security.acls import AclBinding, AclFilter, Operation, PatternType

_PATTERNS = {
    "any": PatternType.ANY,
    "match": PatternType.MATCH,
    "literal": PatternType.LITERAL,
    "prefixed": PatternType.PREFIXED,
}
_AS_OPTIONS = {f"--{name}": name for name in ("list", "add", "remove", "explain")}
_RULE_OPTIONS = (
    click.option(
        "--allow-principal",
        "allowed",
        metavar="PRINCIPAL",
        multiple=True,
        help="Allow this principal; `ada` means User:ada, and `*` everyone.",
    ),
    click.option(
        "--deny-principal",
        "denied",
        metavar="PRINCIPAL",
        multiple=True,
        help="Deny this principal, which takes precedence.",
    ),
    click.option(
        "--operation",
        "operations",
        type=operation_named,
        metavar="OPERATION",
        multiple=True,
        help="Operation such as read, write or describe-configs; by default all.",
    ),
    click.option(
        "--host",
        "hosts",
        metavar="ADDRESS",
        multiple=True,
        help="Address of the clients; by default every one.",
    ),
    click.option(
        "--prefixed",
        "is_prefixed",
        is_flag=True,
        help="Names are prefixes of the resources' names.",
    ),
    click.option(
        "--producer",
        "as_producer",
        is_flag=True,
        help="The rights of producers on the topics and transactional ids.",
    ),
    click.option(
        "--consumer",
        "as_consumer",
        is_flag=True,
        help="The rights of consumers on the topics and groups.",
    ),
    click.option(
        "--idempotent",
        "is_idempotent",
        is_flag=True,
        help="With --producer: idempotence on clusters older than Kafka 3.0.",
    ),
)
"""Options with the names of the fields of `RuleOptions`."""


class _Group(click.Group):
    """A group that accepts actions as options, as kafka-acls names them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] in _AS_OPTIONS:
            args = [_AS_OPTIONS[args[0]], *args[1:]]
        return super().parse_args(ctx, args)


def _resource_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--topic`, `--group` and others, passed as `named`."""
    command = name_options(options_as(ResourceOptions, "named")(command))
    return click.option("--cluster", "on_cluster", is_flag=True, help="The cluster itself.")(
        command
    )


def _rule_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Principals, operations and hosts, passed as `options`."""
    command = options_as(RuleOptions, "options")(command)
    for option in reversed(_RULE_OPTIONS):
        command = option(command)
    return command


@click.group(
    "acls", cls=_Group, short_help="List, add, remove and explain the rules of who may do what."
)
def command() -> None:
    """List, add, remove and explain the rules of who may do what.

    The cluster needs an authorizer. A rule allows or denies one principal an operation on a
    resource, and a denial takes precedence.

    \b
    headrace acls list --topic orders
    headrace acls add --allow-principal ada --producer --topic orders
    headrace acls add --allow-principal ada --consumer --topic orders --group billing
    headrace acls remove --allow-principal ada --operation write --topic orders
    headrace acls explain --principal ada --operation write --topic orders --host 10.0.0.7
    """


@command.command("list")
@_resource_options
@click.option(
    "--principal",
    "principals",
    metavar="PRINCIPAL",
    multiple=True,
    help="Only rules of this principal; may be repeated.",
)
@click.option(
    "--pattern",
    type=click.Choice(list(_PATTERNS)),
    default="any",
    show_default=True,
    help="Rules by these patterns; `match` finds all rules that apply to a name.",
)
@admin_options
def list_rules(
    named: ResourceOptions,
    principals: tuple[str, ...],
    pattern: str,
    as_json: bool,
    cluster: ClusterOptions,
) -> None:
    """List all rules, or those of some resources and principals.

    \b
    headrace acls list
    headrace acls list --topic orders --pattern match
    headrace acls list --principal ada
    """
    with cluster.admin() as client:
        found = _found(client.acls, searches_of(named, principals, _PATTERNS[pattern]))
    _print_rules(found, as_json=as_json)


@command.command("add")
@_resource_options
@_rule_options
@admin_options
def add_rules(
    named: ResourceOptions, options: RuleOptions, as_json: bool, cluster: ClusterOptions
) -> int:
    """Add rules; existing ones stay.

    \b
    headrace acls add --allow-principal ada --operation read --topic orders
    headrace acls add --allow-principal ada --producer --topic orders- --prefixed
    headrace acls add --allow-principal ada --consumer --topic orders --group '*'
    headrace acls add --deny-principal eve --host 10.0.0.7 --topic '*'
    """
    rules = rules_of(named, options)
    with cluster.admin() as client:
        outcomes = client.acls.create(rules)
    failed = [one for one in outcomes if one.error]
    if failed:
        return report(failed, done="", as_json=as_json)
    if as_json:
        print_json([_document(rule) for rule in rules])
    else:
        for rule in rules:
            print_line(rule_text(rule))
    return 0


@command.command("remove")
@_resource_options
@_rule_options
@yes_option
@admin_options
def remove_rules(
    named: ResourceOptions,
    options: RuleOptions,
    yes: bool,
    as_json: bool,
    cluster: ClusterOptions,
) -> None:
    """Remove rules, or all rules of resources.

    Without principals, operations and hosts all rules of the named resources are removed, those by
    a prefix with --prefixed.

    \b
    headrace acls remove --allow-principal ada --operation write --topic orders
    headrace acls remove --topic orders --yes
    """
    filters = filters_of(named, options)
    with cluster.admin() as client:
        found = _found(client.acls, filters)
        if found:
            names = "\n".join(rule_text(rule) for rule in found)
            confirm(f"{names}\nRemove {counted(len(found), 'rule')}?", yes=yes)
        removed = _unique(rule for one in filters for rule in client.acls.delete(one))
    if as_json:
        print_json([_document(rule) for rule in removed])
        return
    for rule in removed:
        print_line(f"removed: {rule_text(rule)}")
    if not removed:
        print_line("no such rule")


@command.command("explain")
@_resource_options
@click.option("--principal", required=True, metavar="PRINCIPAL", help="The principal.")
@click.option(
    "--operation", type=operation_named, required=True, metavar="OPERATION", help="The operation."
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The address that the client connects from.",
)
@click.option(
    "--member-of",
    "memberships",
    metavar="NAME",
    multiple=True,
    help="A group that the client's token or certificate names; may be repeated.",
)
@click.option(
    "--super-user",
    "super_users",
    metavar="PRINCIPAL",
    multiple=True,
    help="A super user, for brokers that do not show super.users; may be repeated.",
)
@admin_options
def explain(
    named: ResourceOptions,
    principal: str,
    operation: Operation,
    host: str,
    memberships: tuple[str, ...],
    super_users: tuple[str, ...],
    as_json: bool,
    cluster: ClusterOptions,
) -> int:
    """Explain whether a principal may do an operation on a resource, and by which rule.

    The rules are read from the cluster, and decided upon as by its authorizer. The exit code is 1
    if the operation is denied.

    \b
    headrace acls explain --principal ada --operation write --topic orders --host 10.0.0.7
    """
    from headrace.cli.acl_verdicts import caller_of, read_exceptions, verdict_of, verdict_text

    resource = only_resource(named, operation)
    caller = caller_of(principal, memberships, host)
    with cluster.admin() as client:
        rules = client.acls.find(AclFilter())
        exceptions = read_exceptions(client, super_users)
    verdict = verdict_of(rules, exceptions, caller, operation, resource)
    text = verdict_text(verdict, caller, operation, resource)
    if as_json:
        rule = verdict.rule and _document(verdict.rule)
        print_json({"is_allowed": verdict.is_allowed, "rule": rule, "explanation": text})
    else:
        print_line(text)
    if exceptions.is_hidden and verdict.rule is None and not verdict.is_allowed:
        warn("the brokers do not show super.users; name super users with --super-user")
    return 0 if verdict.is_allowed else 1


def _found(acls: Acls, filters: list[AclFilter]) -> list[AclBinding]:
    return _unique(rule for one in filters for rule in acls.find(one))


def _unique(rules: Any) -> list[AclBinding]:
    return sorted(set(rules))


def _print_rules(rules: list[AclBinding], *, as_json: bool) -> None:
    if as_json:
        print_json([_document(rule) for rule in rules])
        return
    print_table(
        ("resource", "name", "pattern", "principal", "host", "operation", "permission"),
        [tuple(_document(rule).values()) for rule in rules],
    )


def _document(rule: AclBinding) -> dict[str, str]:
    return {
        "resource_type": kind_text(rule.resource_type),
        "resource_name": rule.resource_name,
        "pattern_type": rule.pattern_type.name.lower(),
        "principal": rule.principal,
        "host": rule.host,
        "operation": operation_text(rule.operation),
        "permission": rule.permission.name.lower(),
    }
