"""Quotas of controller mutations: what is rejected, what is throttled, and by which version."""

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from headrace.controller.decision import Decision
from headrace.controller.mutation_quotas import MutationQuotas
from headrace.errors import ThrottlingQuotaExceeded
from headrace.metadata.image import EMPTY, MetadataImage
from headrace.metadata.records import VersionedRecord
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.protocol.schemas.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.protocol.schemas.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.protocol.schemas.records.metadata import ClientQuotaRecord, EntityData
from headrace.quotas.rates import Windows
from headrace.security.principals import ANONYMOUS, Caller
from tests.builders.metadata_nodes import formatted, started

APP = Caller(ANONYMOUS, "10.0.0.7", "app")
OTHER = Caller(ANONYMOUS, "10.0.0.7", "other")
EXCEEDED = ThrottlingQuotaExceeded.code
# One partition a second, and a burst of eleven.
LIMIT = VersionedRecord(
    ClientQuotaRecord([EntityData("client-id", "app")], "controller_mutation_rate", 1.0)
)


async def limited(root: Path) -> Any:
    controller = await started(formatted(root))
    await controller.submit(lambda image: Decision([LIMIT], None))
    return controller


def creation(name: str, partitions: int) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name, partitions, 1)], timeout_ms=1000)


async def test_mutations_beyond_the_burst_are_rejected(tmp_path: Path) -> None:
    controller = await limited(tmp_path)
    accepted = await controller.ask(creation("a", 20), 7, APP)
    rejected = await controller.ask(creation("b", 1), 7, APP)
    assert (accepted.topics[0].error_code, accepted.throttle_time_ms) == (0, 0)
    assert (rejected.topics[0].error_code, rejected.throttle_time_ms) == (EXCEEDED, 9000)
    assert set(controller.image.topics) == {"a"}


async def test_older_versions_are_accepted_and_throttled(tmp_path: Path) -> None:
    controller = await limited(tmp_path)
    first = await controller.ask(creation("a", 20), 5, APP)
    second = await controller.ask(creation("b", 1), 5, APP)
    assert [first.topics[0].error_code, second.topics[0].error_code] == [0, 0]
    assert [first.throttle_time_ms, second.throttle_time_ms] == [9000, 10_000]


async def test_deletions_and_additions_of_partitions_count(tmp_path: Path) -> None:
    controller = await limited(tmp_path)
    await controller.ask(creation("a", 6), 7, APP)
    await controller.ask(
        CreatePartitionsRequest(topics=[CreatePartitionsTopic("a", 12, None)]), 3, APP
    )
    more = CreatePartitionsRequest(topics=[CreatePartitionsTopic("a", 13, None)])
    gone = DeleteTopicsRequest(topics=[DeleteTopicState("a")])
    assert (await controller.ask(more, 3, APP)).results[0].error_code == EXCEEDED
    assert (await controller.ask(gone, 6, APP)).responses[0].error_code == EXCEEDED
    assert (await controller.ask(gone, 4, APP)).responses[0].error_code == 0


async def test_other_clients_and_nodes_are_not_limited(tmp_path: Path) -> None:
    controller = await limited(tmp_path)
    for caller in (OTHER, None):
        answer = await controller.ask(creation(f"of-{caller is None}", 30), 7, caller)
        again = await controller.ask(creation(f"again-{caller is None}", 30), 7, caller)
        assert (answer.topics[0].error_code, again.topics[0].error_code) == (0, 0)


def test_the_number_of_buckets_is_bounded() -> None:
    quotas, image = MutationQuotas(Windows()), image_of({"controller_mutation_rate": 1.0})
    for number in range(10_005):
        caller = Caller(ANONYMOUS, "10.0.0.7", f"c{number}")
        assert quotas.of(image, ApiKey.CREATE_TOPICS, 7, caller) is not None
    assert len(quotas._buckets) == 10_000


def image_of(values: dict[str, float]) -> MetadataImage:
    return replace(EMPTY, client_quotas={(("client-id", None),): values})
