"""Runs a REST proxy in this process until it is told to stop."""

import asyncio
from collections.abc import Callable

from headrace.http.access import Door
from headrace.http.addresses import ListenAddress
from headrace.http.server import bind, event_loop, serve
from headrace.http.tls import ServerTls
from headrace.rest.errors import rendered
from headrace.rest.routes import application
from headrace.rest.service import Service
from headrace.rest.settings import RestSettings
from headrace.runtime.collector import leave_alone_what_lives


def run(
    settings: RestSettings,
    address: ListenAddress,
    door: Door,
    tls: ServerTls | None,
    on_ready: Callable[[ListenAddress], None],
) -> None:
    """Serve until SIGINT or SIGTERM. The port is taken first, since that fails most often."""
    listener = bind(address)

    def ready(bound: ListenAddress) -> None:
        leave_alone_what_lives()
        on_ready(bound)

    async def main() -> None:
        service = Service(settings)
        async with service.running():
            await serve(
                application(service, door),
                listener,
                on_ready=ready,
                connections_max=settings.connections_max,
                tls=tls,
                has_websockets=True,
                on_stop=service.stop,
                render=rendered,
            )

    with asyncio.Runner(loop_factory=event_loop) as runner:
        runner.run(main())
