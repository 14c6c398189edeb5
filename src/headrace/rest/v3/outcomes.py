"""Results of a request for several partitions, of version 3."""

from collections.abc import Iterable

import msgspec

from headrace.client.descriptions import Outcome, PartitionOutcome
from headrace.rest.errors import body_of, check, failure_of, of_client
from headrace.rest.numbers import Int32

_DONE = 200


class PartitionName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    topic_name: str
    partition_id: Int32


class OutcomeData(msgspec.Struct, frozen=True):
    """The result for one partition; `error_code` is 200 for a success."""

    topic_name: str
    partition_id: int
    error_code: int = _DONE
    message: str | None = None


class Outcomes(msgspec.Struct, frozen=True):
    data: list[OutcomeData]


def each(found: Iterable[PartitionOutcome]) -> Outcomes:
    """Return one result per partition."""
    return Outcomes([shown(one) for one in found])


def shown(one: PartitionOutcome) -> OutcomeData:
    if one.error is None:
        return OutcomeData(one.topic, one.partition)
    body = body_of(of_client(failure_of(_outcome(one))))
    return OutcomeData(one.topic, one.partition, body.error_code, body.message)


def check_one(found: Iterable[PartitionOutcome]) -> None:
    """Raise the error of the only partition, if any."""
    (one,) = found
    check(_outcome(one))


def _outcome(one: PartitionOutcome) -> Outcome:
    name = f"{one.topic}-{one.partition}"
    return Outcome(name=name, error=one.error, message=one.message)
