"""Quotas of users, clients and addresses: describe and alter them."""

from collections.abc import Mapping, Sequence
from enum import IntEnum

import msgspec

from headrace.client.cluster import Cluster, outcome_of
from headrace.client.descriptions import Outcome
from headrace.protocol.schemas.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    OpData,
)
from headrace.protocol.schemas.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

Entity = Mapping[str, str | None]
"""The owner of a quota by `user`, `client-id` or `ip`; None is the default of that kind."""


class Match(IntEnum):
    """Entities of a kind that a filter selects."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


class QuotaFilter(msgspec.Struct, frozen=True):
    """A condition on one kind of entities; `name` applies to EXACT only."""

    kind: str
    match: Match
    name: str | None = None


class ClientQuota(msgspec.Struct, frozen=True):
    """The quotas of an entity by name."""

    entity: dict[str, str | None]
    values: dict[str, float]


class Quotas:
    """The quotas of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def describe(
        self, filters: Sequence[QuotaFilter] = (), *, strict: bool = False
    ) -> list[ClientQuota]:
        """Return quotas that match all filters; `strict` excludes entities with further parts."""
        request = DescribeClientQuotasRequest(
            components=[
                ComponentData(entity_type=one.kind, match_type=one.match, match=one.name)
                for one in filters
            ],
            strict=strict,
        )
        answer = self._cluster.query(request, DescribeClientQuotasResponse)
        return [
            ClientQuota(
                {part.entity_type: part.entity_name for part in one.entity},
                {value.key: value.value for value in one.values},
            )
            for one in answer.entries or ()
        ]

    def alter(
        self, entity: Entity, values: Mapping[str, float | None], *, validate_only: bool = False
    ) -> Outcome:
        """Set quotas of an entity; None removes a quota."""
        entry = AlterClientQuotasRequestEntryData(
            entity=[
                AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name)
                for kind, name in entity.items()
            ],
            ops=[
                OpData(key=name, value=value or 0.0, remove=value is None)
                for name, value in values.items()
            ],
        )
        request = AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
        cluster = self._cluster
        (result,) = cluster.query(request, AlterClientQuotasResponse, cluster.controller_id).entries
        message = result.error_message if result.error_code else None
        return outcome_of(_shown(result.entity), result.error_code, message)


def _shown(entity: Sequence[AlterClientQuotasResponseEntityData]) -> str:
    return ", ".join(f"{one.entity_type} {one.entity_name or '(default)'}" for one in entity)
