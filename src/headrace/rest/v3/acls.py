"""Access rules of version 3; they require brokers with an authorizer."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, TypeVar

import msgspec
from starlette.responses import Response

from headrace.client.admin import Admin
from headrace.http.operations import Parameter
from headrace.rest.errors import bad_request, check, invalid_payload
from headrace.rest.routing import Routes
from headrace.rest.v3.resources import AclData, Collection, shown_type
from headrace.rest.v3.routing import CLUSTER, Context, delete, get, post
from headrace.security.acls import AclBinding, AclFilter, PatternType, Permission, ResourceType
from headrace.security.acls import Operation as AclOperation

E = TypeVar("E", bound=IntEnum)

_RULES_MAX = 1_000
_ACLS = f"{CLUSTER}/acls"
_FILTERS = tuple(
    Parameter(name, "Only rules with this value.") for name in AclData.__struct_fields__
)
_REJECTED = {400: "The broker has no authorizer, or rejects the rule."}
_SHOWN: Any = shown_type(AclData)


class NewAcl(msgspec.Struct, frozen=True):
    """A rule to be added."""

    resource_type: str
    resource_name: str
    principal: str
    operation: str
    permission: str
    pattern_type: str = "LITERAL"
    host: str = "*"


class NewAcls(msgspec.Struct, frozen=True):
    data: list[NewAcl]


class AclList(msgspec.Struct, frozen=True):
    """Deleted rules."""

    data: list[_SHOWN]


class AclRoutes(Routes):
    """Search, add and remove rules."""

    @get(_ACLS, "Search rules.", *_FILTERS, answer=list[AclData], errors=_REJECTED)
    async def search(self, context: Context) -> Collection[AclData]:
        wanted = _filter(context.query)
        found = await context.ask(lambda admin: admin.acls.find(wanted))
        url = context.links.url("acls", query=dict(context.query))
        return context.links.collection("KafkaAclList", map(_data, found), url)

    @post(_ACLS, "Add a rule.", errors=_REJECTED, status=201)
    async def create(self, context: Context, given: NewAcl) -> Response:
        binding = _binding(given)
        await _create(context, [binding])
        location = context.links.shown(_data(binding))["metadata"].self_
        return Response(status_code=201, headers={"Location": location})

    @delete(_ACLS, "Remove the matching rules.", *_FILTERS, answer=AclList, errors=_REJECTED)
    async def delete(self, context: Context) -> dict[str, Any]:
        for name in ("resource_type", "pattern_type", "operation", "permission"):
            if context.query.get(name, "UNKNOWN").upper() == "UNKNOWN":
                raise bad_request(f"{name} cannot be unspecified or UNKNOWN")
        wanted = _filter(context.query)
        found = await context.ask(lambda admin: admin.acls.delete(wanted))
        return {"data": [context.links.shown(_data(one)) for one in found]}

    @post(f"{_ACLS}:batch", "Add several rules.", errors=_REJECTED, status=201)
    async def create_several(self, context: Context, given: NewAcls) -> None:
        if len(given.data) > _RULES_MAX:
            raise invalid_payload(f"At most {_RULES_MAX} rules are allowed in one request.")
        await _create(context, [_binding(one) for one in given.data])


async def _create(context: Context, bindings: list[AclBinding]) -> None:
    def ask(admin: Admin) -> None:
        for outcome in admin.acls.create(bindings):
            check(outcome)

    await context.ask(ask)


def _filter(given: Mapping[str, str]) -> AclFilter:
    return AclFilter(
        resource_type=_member(ResourceType, "resource_type", given.get("resource_type", "ANY")),
        resource_name=given.get("resource_name") or None,
        pattern_type=_member(PatternType, "pattern_type", given.get("pattern_type", "ANY")),
        principal=given.get("principal") or None,
        host=given.get("host") or None,
        operation=_member(AclOperation, "operation", given.get("operation", "ANY")),
        permission=_member(Permission, "permission", given.get("permission", "ANY")),
    )


def _binding(given: NewAcl) -> AclBinding:
    return AclBinding(
        _member(ResourceType, "resource_type", given.resource_type),
        given.resource_name,
        _member(PatternType, "pattern_type", given.pattern_type),
        given.principal,
        given.host,
        _member(AclOperation, "operation", given.operation),
        _member(Permission, "permission", given.permission),
    )


def _member(kind: type[E], name: str, text: str) -> E:
    try:
        return kind[text.upper()]
    except KeyError:
        names = ", ".join(kind.__members__)
        raise bad_request(f"{name} is {text[:40]!r}; it must be one of {names}") from None


def _data(one: AclBinding) -> AclData:
    fields = msgspec.structs.asdict(one).items()
    return AclData(
        **{name: value.name if isinstance(value, IntEnum) else value for name, value in fields}
    )
