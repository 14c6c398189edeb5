"""The authorizer: decisions with their causes, before and after the metadata is loaded (SEC-7)."""

import pytest

from headrace.protocol.schemas.records.metadata import AccessControlEntryRecord
from headrace.security.acls import (
    CLUSTER_NAME,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from headrace.security.authorizer import (
    DecisionLog,
    Reason,
    StandardAuthorizer,
    Verdict,
    parse_super_users,
)
from headrace.security.principals import Caller, Principal

TOPIC, CLUSTER = ResourceType.TOPIC, ResourceType.CLUSTER
ADA = Caller(Principal("User", "ada"), "127.0.0.1")
ADMIN = Caller(Principal("User", "admin"), "127.0.0.1")


def rule(
    operation: Operation = Operation.READ,
    name: str = "orders",
    *,
    principal: str = "User:ada",
    pattern: PatternType = PatternType.LITERAL,
    permission: Permission = Permission.ALLOW,
) -> AclBinding:
    return AclBinding(TOPIC, name, pattern, principal, "*", operation, permission)


def record(one: AclBinding, number: int = 1) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        number.to_bytes(16),
        one.resource_type,
        one.resource_name,
        one.pattern_type,
        one.principal,
        one.host,
        one.operation,
        one.permission,
    )


def authorizer_with(
    *rules: AclBinding, allow_everyone: bool = False, decisions: DecisionLog | None = None
) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(
        ["User:admin", "Group:operators"], allow_everyone=allow_everyone, decisions=decisions
    )
    records = [record(one, number) for number, one in enumerate(rules)]
    authorizer.update({one.id: one for one in records})
    return authorizer


def test_only_super_users_are_allowed_before_the_metadata_is_loaded() -> None:
    authorizer = StandardAuthorizer(["User:admin"], allow_everyone=True)

    assert authorizer.decide(ADA, Operation.READ, TOPIC, "orders").cause is Reason.NOT_LOADED
    assert authorizer.decide(ADMIN, Operation.READ, TOPIC, "orders").cause is Reason.SUPER_USER
    assert not authorizer.allows_any(ADA, Operation.WRITE, TOPIC)


def test_the_rule_that_decides_is_part_of_the_verdict() -> None:
    allowing = rule(Operation.ALL, "ord", pattern=PatternType.PREFIXED)
    denying = rule(Operation.WRITE, principal="User:*", permission=Permission.DENY)
    authorizer = authorizer_with(allowing, denying)

    assert authorizer.decide(ADA, Operation.READ, TOPIC, "orders") == Verdict(True, allowing)
    assert authorizer.decide(ADA, Operation.WRITE, TOPIC, "orders") == Verdict(False, denying)
    assert authorizer.decide(ADA, Operation.READ, TOPIC, "bills").cause is Reason.NO_RULE


def test_a_change_counts_at_once_for_a_question_asked_before() -> None:
    authorizer = authorizer_with(rule())
    assert authorizer.allows(ADA, Operation.READ, TOPIC, "orders")

    authorizer.update({(0).to_bytes(16): None})

    assert not authorizer.allows(ADA, Operation.READ, TOPIC, "orders")
    assert authorizer.rule_count == 0


def test_decisions_about_very_long_names_are_not_kept() -> None:
    """SEC-7: a client without any right could fill the memory with them."""
    authorizer = authorizer_with(rule(name="n", pattern=PatternType.PREFIXED))
    for name in ("n" * 512, "n" * 513, "m" * 30_000):
        assert authorizer.allows(ADA, Operation.READ, TOPIC, name) is name.startswith("n")
    assert [len(question[-1]) for question in authorizer._state.verdicts] == [512]


def test_resources_without_rules_are_open_if_the_setting_opens_them() -> None:
    authorizer = authorizer_with(rule(principal="User:bob"), allow_everyone=True)

    assert authorizer.decide(ADA, Operation.READ, TOPIC, "bills").cause is Reason.OPEN_RESOURCE
    assert not authorizer.allows(ADA, Operation.READ, TOPIC, "orders")


def test_a_group_of_the_principal_is_matched_by_rules_and_super_users() -> None:
    authorizer = authorizer_with(rule(principal="Group:staff"))
    member = Caller(Principal("User", "eve", groups=("staff",)), "127.0.0.1")
    operator = Caller(Principal("User", "eve", groups=("operators",)), "127.0.0.1")

    assert authorizer.allows(member, Operation.DESCRIBE, TOPIC, "orders")
    assert authorizer.allows(operator, Operation.ALTER, CLUSTER, CLUSTER_NAME)


def test_a_number_of_a_newer_release_denies_nothing_and_breaks_nothing() -> None:
    unknown = AccessControlEntryRecord(b"1" * 16, 99, "orders", 77, "User:ada", "*", 66, 55)
    authorizer = authorizer_with(rule())

    authorizer.update({unknown.id: unknown})

    assert authorizer.allows(ADA, Operation.READ, TOPIC, "orders")


class _Decisions:
    def __init__(self) -> None:
        self.verdicts: list[bool] = []

    def decided(
        self, caller: Caller, operation: Operation, kind: ResourceType, name: str, verdict: Verdict
    ) -> None:
        self.verdicts.append(verdict.is_allowed)


def test_decisions_are_reported_except_those_that_give_no_access() -> None:
    decisions = _Decisions()
    authorizer = authorizer_with(rule(), decisions=decisions)

    authorizer.allows(ADA, Operation.READ, TOPIC, "orders")
    authorizer.allows(ADA, Operation.WRITE, TOPIC, "orders", is_audited=False)
    authorizer.allows(ADA, Operation.WRITE, TOPIC, "orders")

    assert decisions.verdicts == [True, False]


def test_super_users_are_parsed_as_in_kafka() -> None:
    assert parse_super_users(" User:ada ;User:CN=bob,O=x;; ") == {"User:ada", "User:CN=bob,O=x"}
    with pytest.raises(ValueError, match="ada"):
        parse_super_users("ada")
