"""Runs a registry in this process until it is told to stop."""

import asyncio
import os
import signal
from collections.abc import Callable

from headrace.client.properties import Properties
from headrace.http.access import TokenFile
from headrace.http.addresses import ListenAddress
from headrace.http.server import address_of, bind, serve
from headrace.registry.leadership.election import Identity
from headrace.registry.routes.application import application
from headrace.registry.service import Registry
from headrace.registry.settings import RegistrySettings, advertised_host


def run(
    properties: Properties,
    settings: RegistrySettings,
    address: ListenAddress,
    tokens: TokenFile | None,
    on_ready: Callable[[ListenAddress, Registry], None],
) -> int:
    """Serve until SIGINT or SIGTERM; the exit code, 1 where the topic was lost.

    The port is taken first, since that fails most often.
    """
    listener = bind(address)
    bound = address_of(listener)

    async def main() -> int:
        registry = Registry(properties, settings)
        registry.load()
        identity = Identity(
            host=settings.host_name or advertised_host(bound.host),
            port=settings.host_port or bound.port,
            master_eligibility=settings.leader_eligibility,
            scheme=settings.inter_instance_protocol,
        )
        async with registry.running(identity, _stop_this_process):
            await serve(
                application(registry, tokens),
                listener,
                on_ready=lambda ready: on_ready(ready, registry),
                connections_max=settings.connections_max,
            )
        return 0 if registry.failure is None else 1

    with asyncio.Runner(loop_factory=_event_loop) as runner:
        return runner.run(main())


def _stop_this_process() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def _event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
