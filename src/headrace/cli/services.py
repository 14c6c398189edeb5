"""What runs beside a node of `headrace up`: the commands of products, as processes of their own."""

import logging
import sys

from headrace.cli.extras import MissingExtra, require
from headrace.runtime.supervision import Service, Supervisor
from headrace.settings.broker import BrokerSettings

_log = logging.getLogger(__name__)

_TITLES = {"registry": "the registry", "rest": "the REST proxy"}


class Beside:
    """The services that a node's settings ask for; they know the node only by its address."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._supervisor = Supervisor(())

    def start(self, bootstrap: str) -> None:
        """Start them once the node answers; who waits for the node does not wait for them."""
        self._supervisor = Supervisor(services(self._settings, bootstrap))
        self._supervisor.start()

    async def stop(self) -> None:
        await self._supervisor.stop()


def services(settings: BrokerSettings, bootstrap: str) -> list[Service]:
    """The services, without those whose libraries are not installed: that is said, once."""
    wanted = {
        "registry": settings.headrace_registry_listeners,
        "rest": settings.headrace_rest_listeners,
    }
    return [
        Service(
            _TITLES[product],
            _command(product, listen, bootstrap, settings),
            f"end what listens on {listen}, or name another place by --{product} HOST:PORT",
        )
        for product, listen in wanted.items()
        if listen and _is_installed(product)
    ]


def _command(product: str, listen: str, bootstrap: str, settings: BrokerSettings) -> list[str]:
    program = [sys.executable, "-m", "headrace.cli.main", product]
    options = ["--bootstrap", bootstrap, "--listen", listen]
    registry = settings.headrace_registry_listeners
    if product == "rest" and registry and not registry.endswith(":0"):
        options += ["--registry", f"http://{registry}"]  # Nobody knows yet which port 0 will be.
    return [*program, *options, "--log-format", settings.headrace_log_format]


def _is_installed(product: str) -> bool:
    try:
        require(product)
    except MissingExtra as missing:
        _log.error("%s is not started: %s", _TITLES[product], missing)
        return False
    return True
