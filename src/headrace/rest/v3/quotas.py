"""Quotas of users, clients and addresses, of version 3; Confluent's proxy does not have them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from headrace.client.quotas import Match, QuotaFilter
from headrace.http.operations import Parameter
from headrace.rest.errors import check
from headrace.rest.routing import Routes
from headrace.rest.v3.resources import QuotaData, QuotaEntity
from headrace.rest.v3.routing import CLUSTER, REJECTED, Context, get, post

_KINDS = {"user": "user", "client_id": "client-id", "ip": "ip"}
"""Kinds of entities as they are written here, and as Kafka writes them."""
_PATH = f"{CLUSTER}/client-quotas"
_DEFAULT = ""
_FILTERS = (Parameter(name, "Only this one; an empty value is the default.") for name in _KINDS)


class QuotaChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Quotas by name, such as `producer_byte_rate`; null removes a quota."""

    entity: QuotaEntity
    quotas: Annotated[dict[str, float | None], Meta(min_length=1)]
    validate_only: bool = False


class QuotaRoutes(Routes):
    """List and alter quotas."""

    @get(
        _PATH,
        "List quotas of users, clients and addresses.",
        *_FILTERS,
        errors={400: "The broker does not support quotas."},
    )
    async def client_quotas(self, context: Context) -> list[QuotaData]:
        filters = [
            _filter(kind, context.query[name])
            for name, kind in _KINDS.items()
            if name in context.query
        ]
        found = await context.ask(lambda admin: admin.quotas.describe(filters))
        return [QuotaData(entity=entity_of(one.entity), quotas=one.values) for one in found]

    @post(f"{_PATH}:alter", "Set or remove quotas.", errors=REJECTED)
    async def alter_client_quotas(self, context: Context, body: QuotaChange) -> None:
        entity = parts_of(body.entity)
        check(
            await context.ask(
                lambda admin: admin.quotas.alter(
                    entity, body.quotas, validate_only=body.validate_only
                )
            )
        )


def parts_of(entity: QuotaEntity) -> dict[str, str | None]:
    """Return an entity as Kafka writes it, with null for the default."""
    given = {kind: getattr(entity, name) for name, kind in _KINDS.items()}
    return {kind: name or None for kind, name in given.items() if name is not None}


def entity_of(parts: dict[str, str | None]) -> QuotaEntity:
    """Return an entity as it is written here, with an empty name for the default."""
    names = {name: parts[kind] for name, kind in _KINDS.items() if kind in parts}
    return QuotaEntity(**{name: found or _DEFAULT for name, found in names.items()})


def _filter(kind: str, name: str) -> QuotaFilter:
    if name == _DEFAULT:
        return QuotaFilter(kind, Match.DEFAULT)
    return QuotaFilter(kind, Match.EXACT, name)
