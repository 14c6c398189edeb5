"""`/subscriptions`: webhooks as things that are put, looked at, paused and deleted."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.http.operations import Operation, Parameter
from headrace.rest.service import Service
from headrace.rest.v3.answers import answer, json_body, nothing
from headrace.rest.webhooks.running import Status
from headrace.rest.webhooks.subscription import Subscription

_PATH = "/subscriptions/{name}"


class Names(msgspec.Struct, frozen=True):
    subscriptions: list[str]


class SubscriptionRoutes:
    """Webhooks by HTTP."""

    def __init__(self, service: Service) -> None:
        self._subscriptions = service.subscriptions

    def operations(self) -> list[Operation]:
        name = (Parameter("name", "The subscription.", "path"),)
        closed = {403: "No targets are allowed, or not this one."}
        missing = {**closed, 404: "There is no such subscription."}
        return [
            Operation(
                "GET",
                "/subscriptions",
                self.list_subscriptions,
                "The names of all subscriptions.",
                answer=Names,
                errors=closed,
            ),
            Operation(
                "PUT",
                _PATH,
                self.put_subscription,
                "Push records to a target of yours, or change how.",
                name,
                body=Subscription,
                answer=Subscription,
                errors={**closed, 404: "A topic is missing.", 422: "The body is not right."},
            ),
            Operation(
                "GET",
                _PATH,
                self.get_subscription,
                "A subscription.",
                name,
                answer=Subscription,
                errors=missing,
            ),
            Operation(
                "DELETE",
                _PATH,
                self.delete_subscription,
                "End a subscription.",
                name,
                errors=missing,
                status=204,
            ),
            Operation(
                "GET",
                f"{_PATH}/status",
                self.get_subscription_status,
                "What this proxy has delivered, what failed, and what waits.",
                name,
                answer=Status,
                errors=missing,
            ),
            Operation(
                "POST",
                f"{_PATH}/pause",
                self.pause_subscription,
                "Deliver nothing for now, on all proxies.",
                name,
                answer=Subscription,
                errors=missing,
            ),
            Operation(
                "POST",
                f"{_PATH}/resume",
                self.resume_subscription,
                "Go on with what was not delivered.",
                name,
                answer=Subscription,
                errors=missing,
            ),
        ]

    async def list_subscriptions(self, request: Request) -> Response:
        return answer(Names(sorted(await self._subscriptions.all())))

    async def put_subscription(self, request: Request) -> Response:
        given = await json_body(request, Subscription)
        await self._subscriptions.put(request.path_params["name"], given)
        return answer(given)

    async def get_subscription(self, request: Request) -> Response:
        return answer(await self._subscriptions.find(request.path_params["name"]))

    async def delete_subscription(self, request: Request) -> Response:
        await self._subscriptions.delete(request.path_params["name"])
        return nothing()

    async def get_subscription_status(self, request: Request) -> Response:
        return answer(await self._subscriptions.status(request.path_params["name"]))

    async def pause_subscription(self, request: Request) -> Response:
        return await self._set_paused(request, paused=True)

    async def resume_subscription(self, request: Request) -> Response:
        return await self._set_paused(request, paused=False)

    async def _set_paused(self, request: Request, *, paused: bool) -> Response:
        name = request.path_params["name"]
        return answer(await self._subscriptions.set_paused(name, paused=paused))
