"""Decisions by access control rules, compared with a plain model that reads every rule (SEC-7)."""

from ipaddress import ip_address

from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.schemas.records.metadata import AccessControlEntryRecord
from headrace.security.acls import AclBinding, Operation, PatternType, Permission, ResourceType
from headrace.security.authorizer import StandardAuthorizer
from headrace.security.principals import Caller, Principal

OPERATIONS = [one for one in Operation if one > Operation.ALL]
KINDS = [ResourceType.TOPIC, ResourceType.GROUP]
NAMES = st.text("abé*.", min_size=1, max_size=4)
HOSTS = ["127.0.0.1", "10.0.0.7", "::1", "0:0:0:0:0:0:0:1", "::ffff:10.0.0.7"]
USERS = ["ada", "bob", "*"]

rules = st.builds(
    AclBinding,
    st.sampled_from(KINDS),
    NAMES | st.just("*"),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from([*(f"User:{one}" for one in USERS), "Group:staff", "Group:ada"]),
    st.sampled_from(["*", *HOSTS]),
    st.sampled_from([Operation.ALL, *OPERATIONS]),
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)
callers = st.builds(
    lambda user, groups, host: Caller(Principal("User", user, groups=groups), host),
    st.sampled_from(["ada", "bob", "eve", "root"]),
    st.sampled_from([(), ("staff",), ("others", "staff")]),
    st.sampled_from(HOSTS),
)
questions = st.tuples(callers, st.sampled_from(OPERATIONS), st.sampled_from(KINDS), NAMES)

IMPLIED = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


def is_for(rule: AclBinding, caller: Caller) -> bool:
    subjects = {str(caller.principal), "User:*"}
    subjects |= {f"Group:{group}" for group in caller.principal.groups}
    return rule.principal in subjects and (
        rule.host == "*" or same_host(rule.host) == same_host(caller.host)
    )


def same_host(text: str) -> str:
    address = ip_address(text)
    return str(getattr(address, "ipv4_mapped", None) or address)


def names(rule: AclBinding, kind: ResourceType, name: str) -> bool:
    if rule.resource_type != kind:
        return False
    if rule.pattern_type is PatternType.PREFIXED:
        return name.startswith(rule.resource_name)
    return rule.resource_name in ("*", name)


def model_allows(
    all_rules: list[AclBinding],
    caller: Caller,
    operation: Operation,
    kind: ResourceType,
    name: str,
    *,
    allow_everyone: bool,
) -> bool:
    if str(caller.principal) == "User:root":
        return True
    of_resource = [rule for rule in all_rules if names(rule, kind, name)]
    if not of_resource:
        return allow_everyone
    mine = [rule for rule in of_resource if is_for(rule, caller)]
    exact = {operation, Operation.ALL}
    if any(rule.permission is Permission.DENY and rule.operation in exact for rule in mine):
        return False
    wide = exact | IMPLIED.get(operation, set())
    return any(rule.permission is Permission.ALLOW and rule.operation in wide for rule in mine)


def model_allows_any(
    all_rules: list[AclBinding],
    caller: Caller,
    operation: Operation,
    kind: ResourceType,
    *,
    allow_everyone: bool,
) -> bool:
    """KIP-679, as in the default method of Kafka's interface `Authorizer`."""
    if model_allows(all_rules, caller, operation, kind, "hardcode", allow_everyone=allow_everyone):
        return True
    mine = [
        rule
        for rule in all_rules
        if rule.resource_type == kind
        and is_for(rule, caller)
        and rule.operation in (operation, Operation.ALL)
    ]
    denied = {
        (rule.pattern_type, rule.resource_name)
        for rule in mine
        if rule.permission is Permission.DENY
    }
    if (PatternType.LITERAL, "*") in denied:
        return False
    allowed = {
        (rule.pattern_type, rule.resource_name)
        for rule in mine
        if rule.permission is Permission.ALLOW
    }
    if (PatternType.LITERAL, "*") in allowed:
        return True
    for pattern_type, name in allowed:
        if pattern_type is PatternType.LITERAL and (pattern_type, name) in denied:
            continue
        heads = [name[:end] for end in range(1, len(name) + 1)]
        if not any((PatternType.PREFIXED, head) in denied for head in heads):
            return True
    return False


def record(number: int, rule: AclBinding) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        number.to_bytes(16),
        rule.resource_type,
        rule.resource_name,
        rule.pattern_type,
        rule.principal,
        rule.host,
        rule.operation,
        rule.permission,
    )


def loaded(all_rules: list[AclBinding], *, allow_everyone: bool) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(["User:root"], allow_everyone=allow_everyone)
    authorizer.update({one.id: one for one in map(record, range(len(all_rules)), all_rules)})
    return authorizer


@given(all_rules=st.lists(rules, max_size=12), question=questions, allow_everyone=st.booleans())
def test_a_decision_equals_that_of_the_model(
    all_rules: list[AclBinding],
    question: tuple[Caller, Operation, ResourceType, str],
    allow_everyone: bool,
) -> None:
    authorizer = loaded(all_rules, allow_everyone=allow_everyone)

    allowed = authorizer.allows(*question)

    assert allowed == model_allows(all_rules, *question, allow_everyone=allow_everyone)


@given(all_rules=st.lists(rules, max_size=12), question=questions, allow_everyone=st.booleans())
def test_a_decision_on_any_resource_of_a_type_equals_that_of_the_model(
    all_rules: list[AclBinding],
    question: tuple[Caller, Operation, ResourceType, str],
    allow_everyone: bool,
) -> None:
    authorizer = loaded(all_rules, allow_everyone=allow_everyone)
    caller, operation, kind, _ = question

    allowed = authorizer.allows_any(caller, operation, kind)

    assert allowed == model_allows_any(
        all_rules, caller, operation, kind, allow_everyone=allow_everyone
    )


@given(
    steps=st.lists(st.dictionaries(st.integers(0, 6), st.none() | rules, max_size=4), max_size=6),
    question=questions,
)
def test_an_index_that_was_changed_step_by_step_decides_as_a_new_one(
    steps: list[dict[int, AclBinding | None]],
    question: tuple[Caller, Operation, ResourceType, str],
) -> None:
    authorizer = loaded([], allow_everyone=True)
    present: dict[int, AclBinding] = {}
    for step in steps:
        authorizer.decide(*question)  # Remembered, and forgotten with the next change.
        authorizer.update(
            {
                number.to_bytes(16): None if rule is None else record(number, rule)
                for number, rule in step.items()
            }
        )
        for number, rule in step.items():
            present.pop(number, None)
            if rule is not None:
                present[number] = rule

    verdict = authorizer.decide(*question)

    expected = loaded(list(present.values()), allow_everyone=True).decide(*question)
    assert verdict.is_allowed == expected.is_allowed
    assert verdict.rule is None or verdict.rule in present.values()


@given(all_rules=st.lists(rules, max_size=12), question=questions)
def test_the_rule_of_a_verdict_decides_alone_as_all_rules_do(
    all_rules: list[AclBinding], question: tuple[Caller, Operation, ResourceType, str]
) -> None:
    verdict = loaded(all_rules, allow_everyone=False).decide(*question)

    if verdict.rule is not None:
        alone = loaded([verdict.rule], allow_everyone=False).decide(*question)
        assert alone == verdict


@given(name=st.text(min_size=1, max_size=20), other=st.text(min_size=1, max_size=20))
def test_a_name_of_any_characters_is_matched_exactly(name: str, other: str) -> None:
    literal = AclBinding(
        ResourceType.TOPIC,
        name,
        PatternType.LITERAL,
        f"User:{name}",
        "*",
        Operation.READ,
        Permission.ALLOW,
    )
    authorizer = loaded([literal], allow_everyone=False)
    caller = Caller(Principal("User", name), "10.0.0.7")

    for asked in (name, other):
        allowed = authorizer.allows(caller, Operation.READ, ResourceType.TOPIC, asked)
        assert allowed == (asked == name or name == "*")
    stranger = Caller(Principal("User", other), "10.0.0.7")
    may = authorizer.allows(stranger, Operation.READ, ResourceType.TOPIC, name)
    assert may == (other == name or name == "*")
