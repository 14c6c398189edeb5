"""Search of quotas: every kind of match, strict and not."""

import pytest

from headrace.errors import InvalidRequest, KafkaError, UnsupportedVersion
from headrace.quotas.precedence import Entity
from headrace.quotas.searching import Condition, Match, matching

EXACT, DEFAULT, ANY = Match
RATE = {"producer_byte_rate": 1.0}
ADA = (("user", "ada"),)
USERS = (("user", None),)
APP = (("client-id", "app"),)
ADA_APP = (("client-id", "app"), ("user", "ada"))
ADA_ALL = (("client-id", None), ("user", "ada"))
HOST = (("ip", "10.0.0.1"),)
HOSTS = (("ip", None),)
QUOTAS: dict[Entity, dict[str, float]] = dict.fromkeys(
    (ADA, USERS, APP, ADA_APP, ADA_ALL, HOST, HOSTS), RATE
)


@pytest.mark.parametrize(
    ("conditions", "expected", "strictly"),
    [
        ([], set(QUOTAS), set()),
        ([Condition("user", EXACT, "ada")], {ADA, ADA_APP, ADA_ALL}, {ADA}),
        ([Condition("user", EXACT, "eve")], set(), set()),
        ([Condition("user", DEFAULT, None)], {USERS}, {USERS}),
        ([Condition("user", ANY, None)], {ADA, USERS, ADA_APP, ADA_ALL}, {ADA, USERS}),
        ([Condition("client-id", ANY, None)], {APP, ADA_APP, ADA_ALL}, {APP}),
        (
            [Condition("client-id", DEFAULT, None), Condition("user", EXACT, "ada")],
            {ADA_ALL},
            {ADA_ALL},
        ),
        (
            [Condition("client-id", ANY, None), Condition("user", ANY, None)],
            {ADA_APP, ADA_ALL},
            {ADA_APP, ADA_ALL},
        ),
        ([Condition("ip", ANY, None)], {HOST, HOSTS}, {HOST, HOSTS}),
        ([Condition("ip", EXACT, "10.0.0.1")], {HOST}, {HOST}),
        ([Condition("ip", DEFAULT, None)], {HOSTS}, {HOSTS}),
    ],
)
def test_conditions_select_entities(
    conditions: list[Condition], expected: set[object], strictly: set[object]
) -> None:
    assert {one for one, _ in matching(QUOTAS, conditions, strict=False)} == expected
    assert {one for one, _ in matching(QUOTAS, conditions, strict=True)} == strictly


@pytest.mark.parametrize(
    ("conditions", "error"),
    [
        ([Condition("", ANY, None)], InvalidRequest),
        ([Condition("group", ANY, None)], UnsupportedVersion),
        ([Condition("user", ANY, None), Condition("user", DEFAULT, None)], InvalidRequest),
        ([Condition("user", EXACT, None)], InvalidRequest),
        ([Condition("user", DEFAULT, "ada")], InvalidRequest),
        ([Condition("user", ANY, "ada")], InvalidRequest),
        ([Condition("user", 3, None)], InvalidRequest),
        ([Condition("ip", ANY, None), Condition("user", ANY, None)], InvalidRequest),
        ([Condition("client-id", ANY, None), Condition("ip", DEFAULT, None)], InvalidRequest),
    ],
)
def test_invalid_filters_are_rejected(conditions: list[Condition], error: type[KafkaError]) -> None:
    with pytest.raises(error):
        matching(QUOTAS, conditions, strict=False)
