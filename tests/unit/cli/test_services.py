"""Which programs are started beside a node."""

import sys

from headrace.cli.services import services
from headrace.settings.broker import BrokerSettings


def test_a_registry_gets_the_address_of_its_node() -> None:
    settings = BrokerSettings(
        headrace_registry_listeners="127.0.0.1:8081", headrace_log_format="json"
    )
    (service,) = services(settings, "127.0.0.1:9092")
    assert service.command == [
        *(sys.executable, "-m", "headrace.cli.main", "registry"),
        *("--bootstrap", "127.0.0.1:9092", "--listen", "127.0.0.1:8081"),
        *("--log-format", "json"),
    ]


def test_a_rest_proxy_gets_the_addresses_of_node_and_registry() -> None:
    settings = BrokerSettings(
        headrace_registry_listeners="127.0.0.1:8081", headrace_rest_listeners="127.0.0.1:8082"
    )
    registry, rest = services(settings, "127.0.0.1:9092")
    assert (registry.name, rest.name) == ("the registry", "the REST proxy")
    assert rest.command == [
        *(sys.executable, "-m", "headrace.cli.main", "rest"),
        *("--bootstrap", "127.0.0.1:9092", "--listen", "127.0.0.1:8082"),
        *("--registry", "http://127.0.0.1:8081", "--log-format", "text"),
    ]


def test_only_enabled_services_are_started() -> None:
    assert services(BrokerSettings(), "127.0.0.1:9092") == []
