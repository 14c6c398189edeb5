"""The parts of a REST proxy: clients by identity, consumer instances, schemas, streams."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import HTTPConnection, Request

from headrace.client.loop_producer import RecordSender
from headrace.http.metrics import HttpMetrics
from headrace.rest import overrides
from headrace.rest.clients import Clients
from headrace.rest.errors import bad_request
from headrace.rest.identities import Identities
from headrace.rest.instances import ConsumerInstances
from headrace.rest.push.hub import Hub
from headrace.rest.schemas import Schemas
from headrace.rest.settings import RestSettings
from headrace.rest.webhooks.subscriptions import Subscriptions


class Service:
    """Shared by all routes; its tasks run within `running`."""

    def __init__(self, settings: RestSettings) -> None:
        self.settings = settings
        self.metrics = HttpMetrics()
        self.identities = Identities(settings)
        self.schemas = Schemas(settings)
        self.instances = ConsumerInstances(settings, self.schemas)
        self.hub = Hub(settings)
        self.subscriptions = Subscriptions(settings, self.identities, self.schemas)

    def clients(self, request: HTTPConnection) -> Clients:
        """Return the clients with the identity of the sender of this request."""
        return self.identities.of(request.scope)

    def sender(self, request: Request) -> RecordSender:
        """Return the producer of a request, with the properties of its query string."""
        clients = self.clients(request)
        if not request.scope["query_string"]:
            return clients.sender()
        given = dict(request.query_params)
        return clients.sender(overrides.checked(given, overrides.PRODUCER, bad_request))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Expire consumer instances until the block ends; then close all clients."""
        async with self.instances.expiring():
            try:
                async with self.subscriptions.running():
                    yield
            finally:
                await self.hub.close()
                await self.identities.close()
                await self.schemas.close()
