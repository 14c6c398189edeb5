"""Quotas of users, clients and addresses by the wire: what is set, and changes to it."""

from collections.abc import Mapping, Sequence
from enum import IntEnum

import msgspec

from headrace.client.cluster import ANY_NODE, Cluster, error_name
from headrace.client.descriptions import Outcome
from headrace.errors import error_for
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
"""Whose a quota is, by `user`, `client-id` or `ip`; None is the default of that kind."""


class Match(IntEnum):
    """Which entities of a kind are meant."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


class QuotaFilter(msgspec.Struct, frozen=True):
    """One part of the entities that are asked for; `name` counts for EXACT alone."""

    kind: str
    match: Match
    name: str | None = None


class ClientQuota(msgspec.Struct, frozen=True):
    """What is set for an entity, by the names of its quotas."""

    entity: dict[str, str | None]
    values: dict[str, float]


class Quotas:
    """What clients may use of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def describe(
        self, filters: Sequence[QuotaFilter] = (), *, strict: bool = False
    ) -> list[ClientQuota]:
        """The quotas that fit all filters; `strict` leaves out entities with further parts."""
        request = DescribeClientQuotasRequest(
            components=[
                ComponentData(entity_type=one.kind, match_type=one.match, match=one.name)
                for one in filters
            ],
            strict=strict,
        )

        def attempt() -> list[ClientQuota]:
            answer = self._cluster.ask(request, DescribeClientQuotasResponse, ANY_NODE)
            if answer.error_code:
                reason = answer.error_message or error_name(answer.error_code)
                raise error_for(answer.error_code, reason)
            return [
                ClientQuota(
                    {part.entity_type: part.entity_name for part in one.entity},
                    {value.key: value.value for value in one.values},
                )
                for one in answer.entries or ()
            ]

        return self._cluster.retry(attempt)

    def alter(
        self, entity: Entity, values: Mapping[str, float | None], *, validate_only: bool = False
    ) -> Outcome:
        """Set quotas of an entity; None takes one away."""
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

        def attempt() -> Outcome:
            answer = self._cluster.ask_controller(request, AlterClientQuotasResponse)
            (result,) = answer.entries
            return Outcome(
                name=_shown(result.entity),
                error=error_name(result.error_code) if result.error_code else None,
                message=result.error_message if result.error_code else None,
            )

        return self._cluster.retry(attempt)


def _shown(entity: Sequence[AlterClientQuotasResponseEntityData]) -> str:
    return ", ".join(f"{one.entity_type} {one.entity_name or '(default)'}" for one in entity)
