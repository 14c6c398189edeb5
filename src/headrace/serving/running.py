"""Runs the server in this process until it is told to stop."""

import asyncio
from collections.abc import Callable

from headrace.http.access import TokenFile
from headrace.http.addresses import ListenAddress
from headrace.http.server import bind, event_loop, serve
from headrace.serving.memory_wall import leave_room_to_stop, raise_wall
from headrace.serving.routes import application
from headrace.serving.service import Service
from headrace.serving.settings import ServingSettings


def run(
    settings: ServingSettings,
    address: ListenAddress,
    tokens: TokenFile | None,
    on_ready: Callable[[ListenAddress], None],
) -> bool:
    """Serve until SIGINT or SIGTERM; whether every thread has ended.

    The port is taken first, since that fails most often.
    """
    listener = bind(address)

    async def main() -> bool:
        service = Service(settings)
        async with service.running():
            raise_wall(settings.memory_bytes)
            try:
                await serve(application(service, tokens), listener, on_ready=on_ready)
            finally:
                leave_room_to_stop()
        return service.is_stopped

    with asyncio.Runner(loop_factory=event_loop) as runner:
        return runner.run(main())
