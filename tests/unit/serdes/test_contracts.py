"""Metadata and rules are compared, merged and checked."""

import pytest

from headrace.serdes.contracts import (
    InvalidRules,
    Metadata,
    Rule,
    RuleKind,
    RuleMode,
    RuleSet,
    check_rules,
    is_same_contract,
    merged_metadata,
    merged_rules,
)


def rule(name: str | None = "check", **given: object) -> Rule:
    return Rule(**{"name": name, "type": "CEL", **given})  # type: ignore[arg-type]


def test_metadata_has_one_order() -> None:
    one = Metadata({"b": ["2", "1", "2"], "a": []}, {"z": "1", "y": "2"}, ["q", "p"])
    assert list((one.sorted().properties or {}).items()) == [("y", "2"), ("z", "1")]
    assert one.sorted().tags == {"a": [], "b": ["1", "2"]}


def test_a_rule_without_kind_and_mode_has_the_usual_ones() -> None:
    assert (rule().sorted().kind, rule().sorted().mode) == (RuleKind.TRANSFORM, RuleMode.WRITEREAD)


def test_newer_metadata_wins() -> None:
    merged = merged_metadata(
        Metadata(properties={"a": "1", "b": "1"}), Metadata(properties={"b": "2"})
    )
    assert merged == Metadata(properties={"a": "1", "b": "2"})


def test_a_newer_rule_takes_the_place_of_its_namesake() -> None:
    old = RuleSet(domain_rules=[rule("a"), rule("b", expr="old")])
    merged = merged_rules(old, RuleSet(domain_rules=[rule("b", expr="new")]))
    assert merged is not None
    assert [(one.name, one.expr) for one in merged.rules] == [("a", None), ("b", "new")]


def test_no_metadata_is_not_empty_metadata() -> None:
    assert not is_same_contract(None, Metadata())


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (RuleSet(domain_rules=[rule(None)]), "Missing rule name"),
        (RuleSet(domain_rules=[rule("")]), "Empty rule name"),
        (RuleSet(domain_rules=[rule("x" * 257)]), "too long"),
        (RuleSet(domain_rules=[rule("1a")]), "initial character"),
        (RuleSet(domain_rules=[rule("a b")]), "Illegal character"),
        (RuleSet(domain_rules=[rule(type=None)]), "Missing rule type"),
        (RuleSet(domain_rules=[rule("a"), rule("a")]), "duplicate name 'a'"),
        (RuleSet(domain_rules=[rule(mode=RuleMode.UPGRADE)]), "Domain rules can only be WRITE"),
        (RuleSet(migration_rules=[rule()]), "Migration rules can only be UPGRADE"),
        (
            RuleSet(domain_rules=[rule(mode=RuleMode.READ, on_failure="A,B")]),
            "Multiple actions",
        ),
    ],
)
def test_invalid_rules_are_rejected(rules: RuleSet, reason: str) -> None:
    with pytest.raises(InvalidRules, match=reason):
        check_rules(rules)


def test_rules_of_all_phases_are_fine() -> None:
    check_rules(
        RuleSet(
            migration_rules=[rule("up", mode=RuleMode.UPDOWN, on_failure="NONE,ERROR")],
            domain_rules=[rule("check", mode=RuleMode.WRITE)],
            encoding_rules=[rule("encrypt")],
        )
    )
