"""Roles of `headrace roles`: their rules, their members, and what a revocation keeps (SEC-9)."""

from pathlib import Path

import click
import pytest

from headrace.cli.main import main
from headrace.cli.role_rules import (
    BUILT_IN,
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
from headrace.security.acls import (
    CLUSTER_NAME,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

ROLES = {role.name: role for role in BUILT_IN}
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


def granted(role: str, principal: str = "User:ada", **names: tuple[str, ...]) -> list[AclBinding]:
    kinds = {ResourceType[key.upper()]: value for key, value in names.items()}
    scopes = scopes_of(ROLES[role], kinds, is_prefixed=False, is_everywhere=False)
    return rules_of(ROLES[role], scopes, principal, "*")


def roles_of(rules: list[AclBinding], principal: str = "User:ada") -> set[str]:
    return {
        role.name
        for role in BUILT_IN
        for holder in holders_of(role, rules)
        if holder.principal == principal
    }


def test_a_grant_becomes_a_rule_for_each_operation() -> None:
    rules = granted("consumer", topic=("orders",), group=("billing",))
    assert {(one.resource_type, one.resource_name, one.operation) for one in rules} == {
        (TOPIC, "orders", Operation.READ),
        (TOPIC, "orders", Operation.DESCRIBE),
        (GROUP, "billing", Operation.READ),
    }
    assert {one.permission for one in rules} == {Permission.ALLOW}


def test_resources_that_a_role_needs_must_be_named() -> None:
    with pytest.raises(click.UsageError, match="--group, or use --everywhere"):
        granted("consumer", topic=("orders",))
    with pytest.raises(click.UsageError, match="no rights on a transactional id"):
        granted("consumer", topic=("orders",), group=("g",), transactional_id=("t",))
    assert granted("producer", topic=("orders",))


def test_everywhere_and_prefixes_are_patterns_of_names() -> None:
    scopes = scopes_of(
        ROLES["operator"], {TOPIC: ("orders-",)}, is_prefixed=True, is_everywhere=True
    )
    assert scopes == [
        Scope(TOPIC, "orders-", PREFIXED),
        Scope(GROUP, "*", LITERAL),
        Scope(CLUSTER, CLUSTER_NAME, LITERAL),
    ]
    assert [scope_text(one) for one in scopes] == ["topic orders-*", "every group", "cluster"]


@pytest.mark.parametrize("role", BUILT_IN, ids=lambda role: role.name)
def test_a_granted_role_has_its_member(role: Role) -> None:
    scopes = scopes_of(role, {}, is_prefixed=False, is_everywhere=True)
    (holder,) = holders_of(role, rules_of(role, scopes, "Group:staff", "10.0.0.7"))
    assert (holder.principal, holder.host) == ("Group:staff", "10.0.0.7")
    assert set(holder.scopes) == set(scopes)


def test_a_principal_that_lacks_one_rule_is_no_member() -> None:
    rules = granted("consumer", topic=("orders",), group=("billing",))
    for missing in rules:
        assert "consumer" not in roles_of([one for one in rules if one != missing])


def test_members_of_admin_have_every_role_on_the_same_resources() -> None:
    scopes = scopes_of(ROLES["admin"], {}, is_prefixed=False, is_everywhere=True)
    rules = rules_of(ROLES["admin"], scopes, "User:ada", "*")
    assert roles_of(rules) == ROLES.keys()


def test_denials_of_a_member_are_counted() -> None:
    denied = AclBinding(TOPIC, "orders", LITERAL, "User:ada", "*", Operation.WRITE, Permission.DENY)
    rules = [*granted("producer", topic=("orders",)), denied]
    (holder,) = holders_of(ROLES["producer"], rules)
    assert holder.denials == 1


def test_only_the_operator_without_rules_is_no_admin() -> None:
    rights = ROLES["operator"].rights[CLUSTER]
    assert Operation.ALTER not in rights
    assert Operation.ALL not in rights


def test_a_revocation_keeps_what_another_role_needs() -> None:
    producer = granted("producer", topic=("orders",))
    consumer = granted("consumer", topic=("orders",), group=("g",))
    rules = sorted({*producer, *consumer})
    (kept,) = kept_rules(ROLES["producer"], producer, BUILT_IN, rules)
    assert kept.operation is Operation.DESCRIBE
    assert kept_rules(ROLES["producer"], producer, BUILT_IN, producer) == set()


def test_roles_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "roles.toml"
    path.write_text(
        '[auditor]\nsummary = "Reads the audit log."\ntopic = ["Read", "describe-configs"]\n'
        'group = ["Read"]\noptional = ["group"]\n'
    )
    role = role_named("auditor", read_roles(path))
    assert role.rights == {
        TOPIC: (Operation.READ, Operation.DESCRIBE_CONFIGS),
        GROUP: (Operation.READ,),
    }
    assert role.optional == {GROUP}
    assert "viewer" in read_roles(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[a]\n", "no rights"),
        ("a = 1\n", "must be a table"),
        ('[a]\ntopics = ["Read"]\n', "topics is not a type"),
        ('[a]\ntopic = ["Fly"]\n', "Fly"),
        ('[a]\ntopic = ["ClusterAction"]\n', "does not apply"),
        ('[a]\ntopic = "Read"\n', "must be a list"),
        ('[a]\ntopic = ["Read"]\noptional = ["group"]\n', "optional"),
        ("[a\n", "roles.toml"),
    ],
)
def test_an_invalid_file_of_roles_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "roles.toml"
    path.write_text(text)
    with pytest.raises(click.UsageError, match=reason):
        read_roles(path)


def test_an_unknown_role_is_refused_with_the_known_ones() -> None:
    with pytest.raises(click.UsageError, match="viewer, producer"):
        role_named("boss", ROLES)


def test_the_list_of_roles_needs_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roles", "list", "--json"]) == 0
    assert '"operator"' in capsys.readouterr().out
