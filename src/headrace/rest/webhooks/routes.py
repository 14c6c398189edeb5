"""`/subscriptions`: webhooks as resources."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.rest.routing import Routes, operation
from headrace.rest.v3.routing import json_answer, json_body
from headrace.rest.webhooks.running import Status
from headrace.rest.webhooks.subscription import Subscription

_PATH = "/subscriptions/{name}"
_FORBIDDEN = {403: "The target is not allowed, or this proxy allows no targets."}
_MISSING = {**_FORBIDDEN, 404: "The subscription does not exist."}


class Names(msgspec.Struct, frozen=True):
    subscriptions: list[str]


class SubscriptionRoutes(Routes):
    """Store, describe, pause and delete webhooks."""

    @operation("GET", "/subscriptions", "List subscriptions.", answer=Names, errors=_FORBIDDEN)
    async def list_subscriptions(self, request: Request) -> Response:
        return json_answer(Names(sorted(await self.service.subscriptions.all())))

    @operation(
        "PUT",
        _PATH,
        "Create or change a subscription.",
        body=Subscription,
        answer=Subscription,
        errors={**_FORBIDDEN, 404: "A topic is missing.", 422: "The body is invalid."},
    )
    async def put_subscription(self, request: Request) -> Response:
        given = await json_body(request, Subscription)
        await self.service.subscriptions.put(request.path_params["name"], given)
        return json_answer(given)

    @operation("GET", _PATH, "Describe a subscription.", answer=Subscription, errors=_MISSING)
    async def get_subscription(self, request: Request) -> Response:
        return json_answer(await self.service.subscriptions.find(request.path_params["name"]))

    @operation("DELETE", _PATH, "Delete a subscription.", errors=_MISSING, status=204)
    async def delete_subscription(self, request: Request) -> Response:
        await self.service.subscriptions.delete(request.path_params["name"])
        return Response(status_code=204)

    @operation(
        "GET",
        f"{_PATH}/status",
        "Report the deliveries, failures and lag of this proxy.",
        answer=Status,
        errors=_MISSING,
    )
    async def get_subscription_status(self, request: Request) -> Response:
        return json_answer(await self.service.subscriptions.status(request.path_params["name"]))

    @operation(
        "POST",
        f"{_PATH}/pause",
        "Pause a subscription on all proxies.",
        answer=Subscription,
        errors=_MISSING,
    )
    async def pause_subscription(self, request: Request) -> Response:
        return await self._set_paused(request, paused=True)

    @operation(
        "POST",
        f"{_PATH}/resume",
        "Resume a subscription after the last delivered record.",
        answer=Subscription,
        errors=_MISSING,
    )
    async def resume_subscription(self, request: Request) -> Response:
        return await self._set_paused(request, paused=False)

    async def _set_paused(self, request: Request, *, paused: bool) -> Response:
        name = request.path_params["name"]
        return json_answer(await self.service.subscriptions.set_paused(name, paused=paused))
