"""Runs a registry in this process until it is told to stop."""

import asyncio
import os
import signal
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from headrace.client.properties import Properties
from headrace.http.access import Door
from headrace.http.addresses import ListenAddress
from headrace.http.server import address_of, bind, event_loop, serve
from headrace.http.tls import ServerTls
from headrace.registry.errors import rendered
from headrace.registry.leadership.election import Identity
from headrace.registry.routes.application import application
from headrace.registry.service import Registry
from headrace.registry.settings import RegistrySettings, advertised_host
from headrace.runtime.collector import leave_alone_what_lives


class Guard(NamedTuple):
    """Who may ask, how the server speaks, and whom it trusts when it asks another instance."""

    door: Door = Door()
    tls: ServerTls | None = None
    authority: Path | None = None

    def forwarding_context(self) -> ssl.SSLContext | None:
        """Shows this instance's own certificate, as others may ask for one."""
        if self.tls is None and self.authority is None:
            return None
        context = ssl.create_default_context(cafile=self.authority)
        if self.tls is not None:
            context.load_cert_chain(self.tls.certificate, self.tls.key, self.tls.key_password or "")
        return context


def run(
    properties: Properties,
    settings: RegistrySettings,
    address: ListenAddress,
    guard: Guard,
    on_ready: Callable[[str, Registry], None],
) -> int:
    """Serve until SIGINT or SIGTERM; the exit code, 1 where the topic was lost.

    The port is taken first, since that fails most often.
    """
    listener = bind(address)
    bound = address_of(listener)
    scheme = "http" if guard.tls is None else "https"

    def ready(listening: ListenAddress, registry: Registry) -> None:
        leave_alone_what_lives()
        on_ready(f"{scheme}://{listening}", registry)

    async def main() -> int:
        registry = Registry(properties, settings, tls=guard.forwarding_context())
        registry.load()
        identity = Identity(
            host=settings.host_name or advertised_host(bound.host),
            port=settings.host_port or bound.port,
            master_eligibility=settings.leader_eligibility,
            scheme=settings.inter_instance_protocol,
        )
        async with registry.running(identity, _stop_this_process):
            await serve(
                application(registry, guard.door),
                listener,
                on_ready=lambda listening: ready(listening, registry),
                connections_max=settings.connections_max,
                tls=guard.tls,
                render=rendered,
            )
        return 0 if registry.failure is None else 1

    with asyncio.Runner(loop_factory=event_loop) as runner:
        return runner.run(main())


def _stop_this_process() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
