"""Rules and filters of `headrace acls`, from options."""

import click
import pytest

from headrace.cli.acl_rules import (
    OPERATIONS,
    ResourceOptions,
    RuleOptions,
    filters_of,
    only_resource,
    operation_named,
    operation_text,
    rule_text,
    rules_of,
    searches_of,
)
from headrace.cli.acl_verdicts import Exceptions, caller_of, verdict_of, verdict_text
from headrace.cli.main import main
from headrace.cli.resource_options import principal_named
from headrace.security.acls import (
    AclBinding,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

ORDERS = ResourceOptions(topics=("orders",))
ADA = RuleOptions(allowed=("ada",))


def rule(
    operation: Operation, kind: ResourceType = ResourceType.TOPIC, name: str = "orders"
) -> AclBinding:
    return AclBinding(kind, name, PatternType.LITERAL, "User:ada", "*", operation, Permission.ALLOW)


def with_rights(**options: object) -> RuleOptions:
    return RuleOptions(allowed=("ada",), **options)  # type: ignore[arg-type]


def test_a_rule_without_an_operation_allows_all() -> None:
    """SEC-7: kafka-acls has the same default."""
    assert rules_of(ORDERS, ADA) == [rule(Operation.ALL)]


def test_each_principal_host_and_operation_gets_a_rule() -> None:
    options = RuleOptions(
        allowed=("ada", "Group:staff"),
        denied=("eve",),
        hosts=("10.0.0.1", "10.0.0.2"),
        operations=(Operation.READ, Operation.WRITE),
    )
    rules = rules_of(ResourceOptions(topics=("orders", "bills")), options)
    assert len(set(rules)) == len(rules) == 2 * 2 * 3 * 2
    assert {one.principal for one in rules} == {"User:ada", "Group:staff", "User:eve"}
    assert {one.permission for one in rules if one.principal == "User:eve"} == {Permission.DENY}


def test_a_producer_may_write_describe_and_create() -> None:
    named = ResourceOptions(topics=("orders",), transactional_ids=("copier",))
    by_id = ResourceType.TRANSACTIONAL_ID
    assert rules_of(named, with_rights(as_producer=True, is_idempotent=True)) == [
        rule(Operation.WRITE),
        rule(Operation.DESCRIBE),
        rule(Operation.CREATE),
        rule(Operation.WRITE, by_id, "copier"),
        rule(Operation.DESCRIBE, by_id, "copier"),
        rule(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, "kafka-cluster"),
    ]


def test_a_consumer_may_read_topics_and_its_group() -> None:
    named = ResourceOptions(topics=("orders",), groups=("billing",))
    assert rules_of(named, with_rights(as_consumer=True)) == [
        rule(Operation.READ),
        rule(Operation.DESCRIBE),
        rule(Operation.READ, ResourceType.GROUP, "billing"),
    ]


def test_a_client_that_does_both_gets_each_rule_once() -> None:
    named = ResourceOptions(topics=("orders",), groups=("billing",))
    rules = rules_of(named, with_rights(as_producer=True, as_consumer=True))
    assert len(rules) == len(set(rules)) == 5


def test_names_may_be_prefixes() -> None:
    (made,) = rules_of(ORDERS, with_rights(is_prefixed=True))
    assert made.pattern_type == PatternType.PREFIXED


@pytest.mark.parametrize(
    ("named", "options", "reported"),
    [
        (ORDERS, RuleOptions(), "--allow-principal or --deny-principal"),
        (ResourceOptions(), ADA, "name a resource"),
        (ORDERS, with_rights(operations=(Operation.CREATE_TOKENS,)), "does not apply to --topic"),
        (ResourceOptions(), with_rights(as_producer=True), "need --topic"),
        (ORDERS, with_rights(as_consumer=True), "needs --group"),
        (ORDERS, with_rights(is_idempotent=True), "belongs to --producer"),
        (ORDERS, with_rights(as_producer=True, denied=("eve",)), "leave out"),
        (
            ResourceOptions(topics=("orders",), groups=("billing",)),
            with_rights(as_producer=True),
            "--group has no effect here",
        ),
    ],
)
def test_an_incomplete_command_line_is_rejected(
    named: ResourceOptions, options: RuleOptions, reported: str
) -> None:
    with pytest.raises(click.UsageError, match=reported):
        rules_of(named, options)


def test_a_resource_alone_removes_all_its_rules() -> None:
    assert filters_of(ORDERS, RuleOptions()) == [
        AclFilter(ResourceType.TOPIC, "orders", PatternType.LITERAL)
    ]


def test_a_principal_alone_removes_its_rules_of_every_operation() -> None:
    (found,) = filters_of(ORDERS, ADA)
    assert (found.principal, found.operation, found.host) == ("User:ada", Operation.ANY, None)


def test_removal_is_the_reverse_of_the_shortcuts() -> None:
    options = with_rights(as_producer=True)
    filters = filters_of(ORDERS, options)
    assert [one.operation for one in filters] == [
        one.operation for one in rules_of(ORDERS, options)
    ]
    assert {one.permission for one in filters} == {Permission.ALLOW}


def test_nothing_given_lists_everything() -> None:
    assert searches_of(ResourceOptions(), (), PatternType.ANY) == [AclFilter()]
    (found,) = searches_of(ORDERS, ("ada",), PatternType.MATCH)
    assert (found.principal, found.pattern_type) == ("User:ada", PatternType.MATCH)


@pytest.mark.parametrize("text", ["DescribeConfigs", "describe-configs", "DESCRIBE_CONFIGS"])
def test_operations_have_several_spellings(text: str) -> None:
    assert operation_named(text) == Operation.DESCRIBE_CONFIGS
    assert operation_text(Operation.DESCRIBE_CONFIGS) == "DescribeConfigs"


def test_an_unknown_operation_is_rejected_with_the_valid_ones() -> None:
    with pytest.raises(click.BadParameter, match="All, Read, Write"):
        operation_named("any")


def test_every_type_of_resource_has_operations() -> None:
    assert OPERATIONS.keys() == {kind for kind in ResourceType if kind > ResourceType.ANY}


def test_a_name_without_a_type_is_a_user() -> None:
    assert principal_named("ada") == "User:ada"
    assert principal_named("CN=ada,O=shop") == "User:CN=ada,O=shop"
    assert principal_named("Group:staff") == "Group:staff"


def test_rules_are_described_in_words() -> None:
    prefixed = AclBinding(
        ResourceType.TOPIC,
        "orders-",
        PatternType.PREFIXED,
        "User:*",
        "10.0.0.7",
        Operation.ALTER_CONFIGS,
        Permission.DENY,
    )
    assert rule_text(prefixed) == (
        "denies everyone AlterConfigs on each topic that begins with orders- from 10.0.0.7"
    )
    assert rule_text(rule(Operation.READ)) == (
        "allows User:ada Read on topic orders from every host"
    )


def test_the_actions_of_kafka_acls_are_understood(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["acls", "--add", "--topic", "orders"]) == 2
    assert "--allow-principal or --deny-principal" in capsys.readouterr().err


TOPIC = (ResourceType.TOPIC, "orders")


def explained(principal: str, operation: Operation, exceptions: Exceptions, *groups: str) -> str:
    caller = caller_of(principal, groups, "10.0.0.7")
    staff = AclBinding(
        *(*TOPIC, PatternType.LITERAL, "Group:staff", "*"), Operation.ALTER, Permission.ALLOW
    )
    eve = AclBinding(
        *(*TOPIC, PatternType.LITERAL, "User:eve", "*"), Operation.ALL, Permission.DENY
    )
    verdict = verdict_of([rule(Operation.WRITE), staff, eve], exceptions, caller, operation, TOPIC)
    return verdict_text(verdict, caller, operation, TOPIC)


@pytest.mark.parametrize(
    ("principal", "operation", "groups", "explanation"),
    [
        ("ada", Operation.WRITE, (), "may Write on topic orders from 10.0.0.7: a rule allows"),
        (
            "ada",
            Operation.DESCRIBE,
            (),
            "may Describe on topic orders from 10.0.0.7: a rule allows",
        ),
        (
            "ada",
            Operation.READ,
            (),
            "may not Read on topic orders from 10.0.0.7: no rule allows it",
        ),
        ("eve", Operation.READ, (), "may not Read on topic orders from 10.0.0.7: a rule denies"),
        ("bob", Operation.ALTER, ("staff",), "may Alter on topic orders from 10.0.0.7: a rule"),
        ("root", Operation.READ, (), "may Read on topic orders from 10.0.0.7: it is one of super"),
    ],
)
def test_decisions_are_explained_by_their_rule(
    principal: str, operation: Operation, groups: tuple[str, ...], explanation: str
) -> None:
    """SEC-7: the authorizer's own code decides."""
    text = explained(principal, operation, Exceptions(frozenset({"User:root"})), *groups)
    assert text.startswith(f"User:{principal} {explanation}")


def test_a_resource_without_rules_may_be_open() -> None:
    caller = caller_of("ada", (), "10.0.0.7")
    bills = (ResourceType.TOPIC, "bills")
    open_to_all = Exceptions(allow_everyone=True)
    verdict = verdict_of([rule(Operation.READ)], open_to_all, caller, Operation.READ, bills)
    assert verdict.is_allowed
    assert not verdict_of([], Exceptions(), caller, Operation.READ, bills).is_allowed


def test_a_question_is_about_one_resource() -> None:
    assert only_resource(ORDERS, Operation.READ) == TOPIC
    with pytest.raises(click.UsageError, match="name one resource"):
        only_resource(ResourceOptions(topics=("a", "b")), Operation.READ)
    with pytest.raises(click.UsageError, match="does not apply"):
        only_resource(ORDERS, Operation.CREATE_TOKENS)
