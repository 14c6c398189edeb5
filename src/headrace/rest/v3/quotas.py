"""Quotas of users, clients and addresses, of version 3; Confluent's proxy has none."""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.quotas import Match, QuotaFilter
from headrace.http.operations import Operation, Parameter
from headrace.rest.errors import check
from headrace.rest.service import Service
from headrace.rest.v3.answers import CLUSTER, MISSING, Context, answer, json_body, nothing
from headrace.rest.v3.resources import Collection, Metadata

_KINDS = {"user": "user", "client_id": "client-id", "ip": "ip"}
"""Kinds of entities as they are written here, and as Kafka writes them."""
_PATH = "/v3/clusters/{cluster_id}/client-quotas"
_DEFAULT = ""


class QuotaEntity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose a quota is; an empty name is the default of that kind."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    def parts(self) -> dict[str, str | None]:
        given = {kind: getattr(self, name) for name, kind in _KINDS.items()}
        return {kind: name or None for kind, name in given.items() if name is not None}


class QuotaData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaClientQuota"
    metadata: Metadata
    cluster_id: str
    entity: QuotaEntity
    quotas: dict[str, float]


class QuotaChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Quotas by name, as `producer_byte_rate`; null takes one away."""

    entity: QuotaEntity
    quotas: Annotated[dict[str, float | None], Meta(min_length=1)]
    validate_only: bool = False


class QuotaRoutes:
    """What clients may use."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        chosen = [
            Parameter(name, "Only of this one; nothing after the = is the default.")
            for name in _KINDS
        ]
        return [
            Operation(
                "GET",
                _PATH,
                self.client_quotas,
                "Quotas of users, clients and addresses.",
                (CLUSTER, *chosen),
                answer=Collection[QuotaData],
                errors={**MISSING, 400: "The broker has none."},
            ),
            Operation(
                "POST",
                f"{_PATH}:alter",
                self.alter_client_quotas,
                "Set quotas, or take them away.",
                (CLUSTER,),
                body=QuotaChange,
                errors={**MISSING, 400: "The broker refuses it.", 422: "The body is not right."},
                status=204,
            ),
        ]

    async def client_quotas(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        filters = [
            _filter(kind, request.query_params[name])
            for name, kind in _KINDS.items()
            if name in request.query_params
        ]
        found = await context.ask(lambda admin: admin.quotas.describe(filters))
        data = [
            QuotaData(
                metadata=Metadata(context.links.url("client-quotas")),
                cluster_id=context.cluster_id,
                entity=entity_of(one.entity),
                quotas=one.values,
            )
            for one in found
        ]
        return answer(context.links.collection("KafkaClientQuotaList", data, "client-quotas"))

    async def alter_client_quotas(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        body = await json_body(request, QuotaChange)
        check(
            await context.ask(
                lambda admin: admin.quotas.alter(
                    body.entity.parts(), body.quotas, validate_only=body.validate_only
                )
            )
        )
        return nothing()


def entity_of(parts: dict[str, str | None]) -> QuotaEntity:
    """Kafka's null is the default, which is written as an empty name here."""
    return QuotaEntity(
        **{
            name: parts[kind] if parts[kind] is not None else _DEFAULT
            for name, kind in _KINDS.items()
            if kind in parts
        }
    )


def _filter(kind: str, name: str) -> QuotaFilter:
    if name == _DEFAULT:
        return QuotaFilter(kind, Match.DEFAULT)
    return QuotaFilter(kind, Match.EXACT, name)
