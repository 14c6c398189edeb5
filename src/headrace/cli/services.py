"""Services started with a node by `headrace up`, each in its own process."""

import logging
import sys

import msgspec

from headrace.cli.extras import MissingExtra, require
from headrace.runtime.supervision import Service, Supervisor
from headrace.settings.broker import BrokerSettings

_log = logging.getLogger(__name__)


class ServiceFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Files by which services reach a secured cluster, and are secured themselves."""

    registry: str
    """Properties of the registry's clients."""
    rest: str
    """Properties of the REST proxy."""
    certificate: str
    authority: str
    users: str
    """Users with passwords for HTTP."""


_TITLES = {"registry": "the registry", "rest": "the REST proxy"}


class Services:
    """The services enabled by the settings; they reach nodes by their addresses only."""

    def __init__(self, settings: BrokerSettings, files: ServiceFiles | None = None) -> None:
        self._settings = settings
        self._files = files
        self._supervisor = Supervisor(())

    def start(self, bootstrap: str) -> None:
        """Start the services once the node answers; the node does not wait for them."""
        self._supervisor = Supervisor(services(self._settings, bootstrap, self._files))
        self._supervisor.start()

    async def stop(self) -> None:
        await self._supervisor.stop()


def services(
    settings: BrokerSettings, bootstrap: str, files: ServiceFiles | None = None
) -> list[Service]:
    """Return the enabled services; log one error for each whose libraries are missing."""
    wanted = {
        "registry": settings.headrace_registry_listeners,
        "rest": settings.headrace_rest_listeners,
    }
    return [
        Service(
            _TITLES[product],
            _command(product, listen, bootstrap, settings, files),
            f"stop the process that uses {listen}, or choose an address with --{product} HOST:PORT",
        )
        for product, listen in wanted.items()
        if listen and _is_installed(product)
    ]


def _command(
    product: str,
    listen: str,
    bootstrap: str,
    settings: BrokerSettings,
    files: ServiceFiles | None,
) -> list[str]:
    program = [sys.executable, "-m", "headrace.cli.main", product]
    options = ["--bootstrap", bootstrap, "--listen", listen]
    registry = settings.headrace_registry_listeners
    if product == "rest" and registry and not registry.endswith(":0"):
        # Port 0 is chosen later, so the address is not known yet.
        options += ["--registry", f"{'http' if files is None else 'https'}://{registry}"]
    if files is not None:
        options += _secured(product, files)
    return [*program, *options, "--log-format", settings.headrace_log_format]


def _secured(product: str, files: ServiceFiles) -> list[str]:
    """Return options that keep passwords out of the command.

    Services act as the admin, so they require a login, too.
    """
    listener = ["--tls-certificate", files.certificate, "--user-file", files.users]
    if product == "registry":
        return ["--command-config", files.registry, "--tls-ca", files.authority, *listener]
    return ["--config", files.rest, *listener]


def _is_installed(product: str) -> bool:
    try:
        require(product)
    except MissingExtra as missing:
        _log.error("service not started", extra={"service": product, "error": str(missing)})
        return False
    return True
