"""Unit tests of `headrace.quotas.precedence`."""

import pytest

from headrace.quotas.precedence import PRODUCER_BYTE_RATE, Applied, Entity, Limits, connection_limit

ADA_APP: Entity = (("client-id", "app"), ("user", "ada"))
ADA_ANY: Entity = (("client-id", None), ("user", "ada"))
ADA: Entity = (("user", "ada"),)
ANY_APP: Entity = (("client-id", "app"), ("user", None))
ANY_ANY: Entity = (("client-id", None), ("user", None))
ANY: Entity = (("user", None),)
APP: Entity = (("client-id", "app"),)
ANY_CLIENT: Entity = (("client-id", None),)

BY_PRECEDENCE = (ADA_APP, ADA_ANY, ADA, ANY_APP, ANY_ANY, ANY, APP, ANY_CLIENT)
OWNERS = (
    *(("ada", "app"), ("ada", "app"), ("ada", ""), ("ada", "app"), ("ada", "app"), ("ada", "")),
    *(("", "app"), ("", "app")),
)


def limits(*entities: Entity) -> Limits:
    quotas = {one: {PRODUCER_BYTE_RATE: float(BY_PRECEDENCE.index(one))} for one in entities}
    return Limits(quotas, PRODUCER_BYTE_RATE)


@pytest.mark.parametrize("first", range(len(BY_PRECEDENCE)))
def test_the_most_specific_quota_applies(first: int) -> None:
    assert limits(*BY_PRECEDENCE[first:]).find("ada", "app") == Applied(*OWNERS[first], first)


def test_a_client_without_a_quota_has_none() -> None:
    assert limits(ADA, APP).find("bob", "other") is None


def test_a_client_without_an_id_has_no_quota_of_client_ids() -> None:
    assert limits(ADA_ANY, ANY_ANY, ANY_CLIENT).find("ada", "") is None
    assert limits(ADA_ANY, ADA).find("ada", "") == Applied("ada", "", 2)


def test_quotas_of_other_kinds_are_ignored() -> None:
    quotas = {ADA: {"consumer_byte_rate": 1.0}, (("ip", "::1"),): {PRODUCER_BYTE_RATE: 1.0}}
    assert not Limits(quotas, PRODUCER_BYTE_RATE)


def test_an_address_has_its_own_limit_or_the_default() -> None:
    quotas: dict[Entity, dict[str, float]] = {
        (("ip", "10.0.0.1"),): {"connection_creation_rate": 5.0},
        (("ip", None),): {"connection_creation_rate": 2.0},
    }
    assert connection_limit(quotas, "10.0.0.1") == 5
    assert connection_limit(quotas, "10.0.0.2") == 2
    assert connection_limit({}, "10.0.0.2") is None
