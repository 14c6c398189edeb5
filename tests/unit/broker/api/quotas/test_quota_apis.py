"""AlterClientQuotas and DescribeClientQuotas of a broker, as ClientQuotaControlManager decides."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.errors import ClusterAuthorizationFailed, InvalidRequest
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from headrace.protocol.schemas.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from headrace.security.acls import Operation
from tests.builders.authorizers import ListedRights
from tests.unit.broker.api.builders import UnitBroker, a_broker, ask

ADA = {"user": "ada"}
PRODUCE, CONSUME = "producer_byte_rate", "consumer_byte_rate"


@pytest.fixture
def broker(tmp_path: Path) -> UnitBroker:
    return a_broker(tmp_path)


def entry(
    entity: Mapping[str, str | None], *values: tuple[str, float | None]
) -> AlterClientQuotasRequestEntryData:
    return AlterClientQuotasRequestEntryData(
        [AlterClientQuotasRequestEntityData(*one) for one in entity.items()],
        [OpData(key, value or 0.0, value is None) for key, value in values],
    )


async def alter(
    broker: UnitBroker,
    *entries: AlterClientQuotasRequestEntryData,
    validate_only: bool = False,
    version: int = 1,
) -> list[int]:
    request = AlterClientQuotasRequest(list(entries), validate_only)
    answer = await ask(broker, ApiKey.ALTER_CLIENT_QUOTAS, request, version)
    return [one.error_code for one in answer.entries]


async def described(broker: UnitBroker, *components: ComponentData) -> DescribeClientQuotasResponse:
    request = DescribeClientQuotasRequest(list(components))
    answer = await ask(broker, ApiKey.DESCRIBE_CLIENT_QUOTAS, request)
    assert isinstance(answer, DescribeClientQuotasResponse)
    return answer


async def quotas(broker: UnitBroker) -> dict[object, dict[str, float]]:
    return {
        tuple((part.entity_type, part.entity_name) for part in one.entity): {
            value.key: value.value for value in one.values
        }
        for one in (await described(broker)).entries or ()
    }


@pytest.mark.parametrize("version", range(2))
async def test_quotas_are_set_changed_and_removed(broker: UnitBroker, version: int) -> None:
    """QUO-1: quotas are records of the metadata."""
    assert await alter(broker, entry(ADA, (PRODUCE, 10.0), (CONSUME, 5.0)), version=version) == [0]
    assert await alter(broker, entry(ADA, (PRODUCE, 20.0), (CONSUME, None)), version=version) == [0]
    assert await quotas(broker) == {(("user", "ada"),): {PRODUCE: 20.0}}
    assert await alter(broker, entry(ADA, (PRODUCE, None)), version=version) == [0]
    assert await quotas(broker) == {}


async def test_defaults_and_combinations_are_entities_of_their_own(broker: UnitBroker) -> None:
    entities: list[dict[str, str | None]] = [
        {"user": None},
        {"user": "ada", "client-id": None},
        {"client-id": "app", "user": "ada"},
    ]
    codes = await alter(broker, *(entry(one, (PRODUCE, 1.0)) for one in entities))
    assert codes == [0, 0, 0]
    assert set(await quotas(broker)) == {
        (("user", None),),
        (("client-id", None), ("user", "ada")),
        (("client-id", "app"), ("user", "ada")),
    }


async def test_an_error_of_one_entity_leaves_the_others_to_be_changed(broker: UnitBroker) -> None:
    bad = entry({"user": "bob"}, (PRODUCE, 1.0), ("nonsense", 1.0))
    assert await alter(broker, bad, entry(ADA, (PRODUCE, 1.0))) == [InvalidRequest.code, 0]
    assert set(await quotas(broker)) == {(("user", "ada"),)}


async def test_a_repeated_entity_or_key_is_rejected_and_changes_nothing(
    broker: UnitBroker,
) -> None:
    twice = entry({"user": "bob"}, (PRODUCE, 1.0), (PRODUCE, 2.0))
    codes = await alter(broker, entry(ADA, (PRODUCE, 1.0)), twice, entry(ADA, (CONSUME, 1.0)))
    assert codes == [InvalidRequest.code] * 2
    assert await quotas(broker) == {}


async def test_a_value_that_stays_the_same_is_not_written(broker: UnitBroker) -> None:
    await alter(broker, entry(ADA, (PRODUCE, 1.0)))
    offset = broker.image.offset
    assert await alter(broker, entry(ADA, (PRODUCE, 1.0), (CONSUME, None))) == [0]
    assert broker.image.offset == offset


async def test_validate_only_checks_and_changes_nothing(broker: UnitBroker) -> None:
    entries = entry(ADA, (PRODUCE, 1.0)), entry({"user": "bob"}, (PRODUCE, -1.0))
    assert await alter(broker, *entries, validate_only=True) == [0, InvalidRequest.code]
    assert await quotas(broker) == {}


async def test_describing_filters_by_conditions(broker: UnitBroker) -> None:
    await alter(broker, entry(ADA, (PRODUCE, 1.0)), entry({"user": None}, (PRODUCE, 2.0)))
    answer = await described(broker, ComponentData("user", 1, None))
    assert [one.values[0].value for one in answer.entries or ()] == [2.0]


async def test_an_invalid_filter_is_answered_without_a_list(broker: UnitBroker) -> None:
    answer = await described(broker, ComponentData("user", 9, None))
    assert (answer.error_code, answer.entries) == (InvalidRequest.code, None)


async def test_both_need_rights_to_the_configs_of_the_cluster(broker: UnitBroker) -> None:
    broker.controller.authorizer = authorizer = ListedRights()
    denied = ClusterAuthorizationFailed.code
    assert await alter(broker, entry(ADA, (PRODUCE, 1.0)), entry({"ip": None})) == [denied] * 2
    assert (await described(broker)).error_code == denied
    assert [operation for operation, _, _ in authorizer.asked] == [
        Operation.ALTER_CONFIGS,
        Operation.DESCRIBE_CONFIGS,
    ]
