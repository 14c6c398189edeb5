"""`headrace roles`: named sets of rights, granted to principals and groups as plain rules."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from headrace.cli.acl_rules import kind_text, operation_text, rule_text
from headrace.cli.options import ClusterOptions, admin_options, confirm, options_as, yes_option
from headrace.cli.output import counted, print_json, print_line, print_table, report
from headrace.cli.resource_options import NamedResources, name_options, principal_named
from headrace.cli.role_rules import (
    Holder,
    Role,
    Scope,
    holders_of,
    kept_rules,
    read_roles,
    role_named,
    rules_of,
    scope_text,
    scopes_of,
)
from headrace.client.acls import Acls
from headrace.security.acls import AclBinding, AclFilter

_ROLES_FILE = click.option(
    "--roles",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="HEADRACE_ROLES",
    metavar="FILE",
    help="Roles of your own as TOML, beside the built-in ones.",
)


class Grant(NamedResources, frozen=True):
    """The resources and hosts of a grant."""

    hosts: tuple[str, ...] = ("*",)
    is_prefixed: bool = False
    is_everywhere: bool = False

    def rules(self, role: Role, principal: str) -> list[AclBinding]:
        scopes = scopes_of(
            role, self.names, is_prefixed=self.is_prefixed, is_everywhere=self.is_everywhere
        )
        who = principal_named(principal)
        return [rule for host in self.hosts for rule in rules_of(role, scopes, who, host)]


def _grant_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Resources and hosts, passed as `grant`."""
    command = options_as(Grant, "grant")(command)
    command = click.option(
        "--everywhere",
        "is_everywhere",
        is_flag=True,
        help="Every resource of each type that is not named.",
    )(command)
    command = click.option(
        "--prefixed", "is_prefixed", is_flag=True, help="Names are prefixes of resources' names."
    )(command)
    command = name_options(command)
    return click.option(
        "--host",
        "hosts",
        metavar="ADDRESS",
        multiple=True,
        default=("*",),
        help="Address of the clients; by default every one.",
    )(command)


@click.group("roles", short_help="List roles, grant and revoke them, list their members.")
def command() -> None:
    """List roles, grant and revoke them, and list their members.

    A role is a named set of rights. It is granted to a principal such as `ada`, or to a group of a
    token or certificate such as `Group:staff`, by plain rules, which `headrace acls` and kafka-acls
    show.

    \b
    headrace roles list
    headrace roles grant consumer ada --topic orders --group billing
    headrace roles grant viewer Group:staff --everywhere
    headrace roles members
    headrace roles revoke consumer ada --topic orders --group billing
    """


@command.command("list")
@_ROLES_FILE
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_roles(path: Path | None, as_json: bool) -> None:
    """List the roles with their rights; no cluster is needed.

    \b
    headrace roles list
    headrace roles list --roles roles.toml
    """
    roles = read_roles(path).values()
    if as_json:
        print_json([_role_document(role) for role in roles])
        return
    print_table(
        ("role", "resource", "operations", "summary"),
        [
            (
                role.name if number == 0 else "",
                kind_text(kind),
                ", ".join(map(operation_text, operations)),
                role.summary if number == 0 else "",
            )
            for role in roles
            for number, (kind, operations) in enumerate(role.rights.items())
        ],
    )


@command.command("members")
@click.argument("role", required=False)
@_ROLES_FILE
@admin_options
def list_members(
    role: str | None, path: Path | None, as_json: bool, cluster: ClusterOptions
) -> None:
    """List the principals that have all rules of a role, or of each role.

    \b
    headrace roles members
    headrace roles members operator
    """
    roles = read_roles(path)
    wanted = list(roles.values()) if role is None else [role_named(role, roles)]
    with cluster.admin() as client:
        rules = client.acls.find(AclFilter())
    holders = [holder for one in wanted for holder in holders_of(one, rules)]
    if as_json:
        print_json([_holder_document(holder) for holder in holders])
        return
    print_table(
        ("role", "principal", "host", "resources", "denials"),
        [
            (
                one.role,
                one.principal,
                one.host,
                ", ".join(map(scope_text, one.scopes)),
                one.denials,
            )
            for one in holders
        ],
    )


@command.command("grant")
@click.argument("role")
@click.argument("principal")
@_grant_options
@_ROLES_FILE
@admin_options
def grant_role(
    role: str,
    principal: str,
    grant: Grant,
    path: Path | None,
    as_json: bool,
    cluster: ClusterOptions,
) -> int:
    """Grant a role to a principal on some resources; existing rules stay.

    \b
    headrace roles grant producer ada --topic orders
    headrace roles grant consumer Group:billing --topic orders- --group billing- --prefixed
    headrace roles grant operator ops --everywhere --host 10.0.0.7
    """
    rules = grant.rules(role_named(role, read_roles(path)), principal)
    with cluster.admin() as client:
        outcomes = client.acls.create(rules)
    failed = [one for one in outcomes if one.error]
    if failed:
        return report(failed, done="", as_json=as_json)
    _print_changes(rules, "", as_json=as_json)
    return 0


@command.command("revoke")
@click.argument("role")
@click.argument("principal")
@_grant_options
@_ROLES_FILE
@yes_option
@admin_options
def revoke_role(
    role: str,
    principal: str,
    grant: Grant,
    path: Path | None,
    yes: bool,
    as_json: bool,
    cluster: ClusterOptions,
) -> None:
    """Revoke a role of a principal on some resources.

    Rules that another role of the principal needs are kept.

    \b
    headrace roles revoke producer ada --topic orders --yes
    """
    roles = read_roles(path)
    revoked = role_named(role, roles)
    wanted = grant.rules(revoked, principal)
    with cluster.admin() as client:
        present = client.acls.find(AclFilter())
        kept = kept_rules(revoked, wanted, roles.values(), present)
        doomed = [rule for rule in wanted if rule in set(present) and rule not in kept]
        if doomed:
            names = "\n".join(rule_text(rule) for rule in doomed)
            confirm(f"{names}\nRemove {counted(len(doomed), 'rule')}?", yes=yes)
        removed = [rule for one in doomed for rule in _delete(client.acls, one)]
    _print_changes(removed, "removed: ", as_json=as_json)
    if as_json:
        return
    for rule in sorted(kept):
        print_line(f"kept for another role: {rule_text(rule)}")
    if not removed:
        print_line("no such rule")


def _delete(acls: Acls, rule: AclBinding) -> list[AclBinding]:
    return acls.delete(AclFilter(*msgspec.structs.astuple(rule)))


def _print_changes(rules: Sequence[AclBinding], lead: str, *, as_json: bool) -> None:
    if as_json:
        print_json([rule_text(rule) for rule in rules])
        return
    for rule in rules:
        print_line(f"{lead}{rule_text(rule)}")


def _role_document(role: Role) -> dict[str, Any]:
    return {
        "name": role.name,
        "summary": role.summary,
        "rights": {
            kind_text(kind): [operation_text(one) for one in operations]
            for kind, operations in role.rights.items()
        },
    }


def _holder_document(holder: Holder) -> dict[str, Any]:
    return {
        "role": holder.role,
        "principal": holder.principal,
        "host": holder.host,
        "resources": [_scope_document(one) for one in holder.scopes],
        "denials": holder.denials,
    }


def _scope_document(scope: Scope) -> dict[str, str]:
    return {
        "resource_type": kind_text(scope.kind),
        "resource_name": scope.name,
        "pattern_type": scope.pattern.name.lower(),
    }
