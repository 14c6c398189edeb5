"""What became of each of several partitions that a request is about, of version 3."""

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from headrace.client.descriptions import Outcome, PartitionOutcome
from headrace.rest.errors import body_of, check, failure_of, of_client
from headrace.rest.numbers import INT32_MAX
from headrace.rest.v3.answers import answer

_DONE = 200
_EACH_HAS_ITS_OWN = 207

Partition = Annotated[int, Meta(ge=0, le=INT32_MAX)]
BrokerId = Annotated[int, Meta(ge=0, le=INT32_MAX)]


class PartitionName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    topic_name: str
    partition_id: Partition


class OutcomeData(msgspec.Struct, frozen=True):
    """How it went for one partition; `error_code` is 200 where it went well."""

    topic_name: str
    partition_id: int
    error_code: int = _DONE
    message: str | None = None


class Outcomes(msgspec.Struct, frozen=True):
    data: list[OutcomeData]


def each(found: Iterable[PartitionOutcome]) -> Response:
    """The answer where each partition has a result of its own."""
    return answer(Outcomes([shown(one) for one in found]), _EACH_HAS_ITS_OWN)


def shown(one: PartitionOutcome) -> OutcomeData:
    if one.error is None:
        return OutcomeData(one.topic, one.partition)
    refusal = body_of(of_client(failure_of(_outcome(one))))
    return OutcomeData(one.topic, one.partition, refusal.error_code, refusal.message)


def check_one(found: Iterable[PartitionOutcome]) -> None:
    """Raise what became of the one partition, unless it went well."""
    (one,) = found
    check(_outcome(one))


def _outcome(one: PartitionOutcome) -> Outcome:
    name = f"{one.topic}-{one.partition}"
    return Outcome(name=name, error=one.error, message=one.message)
