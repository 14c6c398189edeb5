"""Which programs are started beside a node."""

import sys

from headrace.cli.services import services
from headrace.settings.broker import BrokerSettings


def test_a_registry_is_told_where_its_node_is() -> None:
    settings = BrokerSettings(
        headrace_registry_listeners="127.0.0.1:8081", headrace_log_format="json"
    )
    (service,) = services(settings, "127.0.0.1:9092")
    assert service.command == [
        *(sys.executable, "-m", "headrace.cli.main", "registry"),
        *("--bootstrap", "127.0.0.1:9092", "--listen", "127.0.0.1:8081"),
        *("--log-format", "json"),
    ]


def test_nothing_is_started_that_nobody_asked_for() -> None:
    assert services(BrokerSettings(), "127.0.0.1:9092") == []
