"""What a REST proxy consists of: the clients of who asks, the consumers, the schemas."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import HTTPConnection

from headrace.http.metrics import HttpMetrics
from headrace.rest.clients import Clients
from headrace.rest.identities import Identities
from headrace.rest.instances import ConsumerInstances
from headrace.rest.push.hub import Hub
from headrace.rest.schemas import Schemas
from headrace.rest.settings import RestSettings
from headrace.rest.webhooks.subscriptions import Subscriptions


class Service:
    """Shared by all routes; has nothing running outside of `running`."""

    def __init__(self, settings: RestSettings) -> None:
        self.settings = settings
        self.metrics = HttpMetrics()
        self.identities = Identities(settings)
        self.schemas = Schemas(settings)
        self.instances = ConsumerInstances(settings, self.schemas)
        self.hub = Hub(settings)
        self.subscriptions = Subscriptions(settings, self.identities, self.schemas)

    def clients(self, request: HTTPConnection) -> Clients:
        """The clients that speak in the name of who sent this request."""
        return self.identities.of(request.scope)

    def stop(self) -> None:
        """End what would never end by itself, when the server is told to."""
        self.hub.stop()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Consumers expire while this is open; at its end all clients are closed."""
        async with self.instances.expiring():
            try:
                async with self.subscriptions.running():
                    yield
            finally:
                await self.hub.close()
                await self.identities.close()
                await self.schemas.close()
