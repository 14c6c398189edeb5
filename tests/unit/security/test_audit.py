"""The audit log: its events, their rates, and what is counted (SEC-9)."""

from typing import Any

import pytest
from msgspec import json

from headrace.security.acls import (
    CLUSTER_NAME,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from headrace.security.audit import EVENT_KINDS, AuditLog
from headrace.security.authorizer import Reason, Verdict
from headrace.security.principals import Caller, Principal

TOPIC = ResourceType.TOPIC
ADA = Caller(Principal("User", "ada"), "10.0.0.7")
DENIED = Verdict(False, Reason.NO_RULE)
RULE = AclBinding(
    TOPIC, "ord", PatternType.PREFIXED, "User:*", "*", Operation.READ, Permission.ALLOW
)


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def __call__(self) -> int:
        return self.ms


def log_of(*kinds: str, rate: float = 1, clock: Hand | None = None, topic: str = "") -> AuditLog:
    hand = clock or Hand()
    return AuditLog(1, kinds or EVENT_KINDS, rate, now_ms=hand, monotonic_ms=hand, own_topic=topic)


def deny(log: AuditLog, times: int = 1, caller: Caller = ADA) -> None:
    for _ in range(times):
        log.decided(caller, Operation.WRITE, TOPIC, "orders", DENIED)


def taken(log: AuditLog) -> list[dict[str, Any]]:
    return [json.decode(event.line) for event in log.take()]


def test_a_denied_request_becomes_an_event() -> None:
    log = log_of()
    deny(log)
    assert taken(log) == [
        {
            "time": "1970-01-01T00:16:40.000Z",
            "node": 1,
            "event": "authorization",
            "principal": "User:ada",
            "host": "10.0.0.7",
            "operation": "WRITE",
            "resource_type": "TOPIC",
            "resource": "orders",
            "allowed": False,
            "reason": "no rule allows it",
        }
    ]
    assert log.take() == []


def test_an_event_has_the_rule_that_decided() -> None:
    log = log_of()
    log.decided(ADA, Operation.READ, TOPIC, "orders", Verdict(True, RULE))
    (event,) = taken(log)
    assert event["allowed"]
    assert event["rule"] == {
        "permission": "ALLOW",
        "principal": "User:*",
        "host": "*",
        "operation": "READ",
        "resource_type": "TOPIC",
        "resource": "ord",
        "pattern": "PREFIXED",
    }


def test_logins_become_events_with_principal_or_error() -> None:
    log = log_of()
    log.authenticated("SASL", "10.0.0.7", "PLAIN", ADA.principal, None)
    log.authenticated("SASL", "10.0.0.7", "PLAIN", None, "invalid credentials")
    succeeded, failed = taken(log)
    assert (succeeded["succeeded"], succeeded["principal"]) == (True, "User:ada")
    assert (failed["succeeded"], failed["principal"]) == (False, None)
    assert failed["error"] == "invalid credentials"


@pytest.mark.parametrize(("kind", "expected"), [("denied", 1), ("allowed", 1), ("logins", 1)])
def test_only_the_wanted_kinds_are_recorded(kind: str, expected: int) -> None:
    log = log_of(kind)
    deny(log)
    log.decided(ADA, Operation.READ, TOPIC, "orders", Verdict(True, RULE))
    log.authenticated("SASL", "10.0.0.7", "PLAIN", ADA.principal, None)
    assert len(log.take()) == expected


def test_a_principal_above_its_rate_costs_no_event_of_others() -> None:
    clock = Hand()
    log = log_of(clock=clock)
    deny(log, 100)
    deny(log, caller=Caller(Principal("User", "bob"), "10.0.0.7"))
    events = taken(log)
    assert [one["principal"] for one in events] == ["User:ada"] * 10 + ["User:bob"]
    assert log.counts.rate_limited == 90

    clock.ms += 1000
    deny(log)
    (event,) = taken(log)
    assert event["dropped_before"] == 90


def test_failed_logins_are_limited_by_address_whatever_name_they_use() -> None:
    log = log_of()
    for _ in range(50):
        log.authenticated("SASL", "10.0.0.7", "PLAIN", None, "invalid credentials")
    log.authenticated("SASL", "10.0.0.8", "PLAIN", None, "invalid credentials")
    assert [one["host"] for one in taken(log)] == ["10.0.0.7"] * 10 + ["10.0.0.8"]


def test_very_many_principals_share_one_rate() -> None:
    clock = Hand()
    log = log_of(clock=clock)
    for number in range(10_000):
        deny(log, caller=Caller(Principal("User", f"u{number}"), "10.0.0.7"))
    recorded = len(log.take())
    assert recorded < 5_000
    assert log.counts.rate_limited == 10_000 - recorded

    clock.ms += 60_000
    deny(log, caller=Caller(Principal("User", "late"), "10.0.0.7"))
    (event,) = taken(log)
    assert event["principal"] == "User:late"


def test_events_that_no_writer_takes_are_bounded() -> None:
    log = log_of(rate=1_000_000)
    deny(log, 20_010)
    assert len(log.take()) == 20_000
    assert log.counts.overflowed == 10


def test_nodes_among_themselves_and_the_log_itself_make_no_events() -> None:
    log = log_of(topic="audit")
    node = Caller(Principal("User", "broker"), "10.0.0.1")
    by_right = Verdict(True, Reason.SUPER_USER)
    log.decided(node, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME, by_right)
    log.decided(node, Operation.WRITE, TOPIC, "audit", by_right)
    assert log.take() == []
    log.decided(node, Operation.WRITE, TOPIC, "orders", by_right)
    assert len(log.take()) == 1


def test_long_names_and_strange_characters_stay_one_short_line() -> None:
    log = log_of()
    log.decided(ADA, Operation.READ, TOPIC, "\n\r\x1b" + "n" * 5_000, DENIED)
    (event,) = log.take()
    assert b"\n" not in event.line
    assert len(event.line) < 2_000
