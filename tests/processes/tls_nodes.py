"""Nodes with a TLS listener, and the settings of clients for them."""

from pathlib import Path
from typing import Any

from tests.builders.certificates import Authority, Owned
from tests.processes.nodes import HOST, Flavour, Headrace, Node


class TlsNode(Node):
    """One broker whose only listener speaks TLS, with certificates of its own authority."""

    def __init__(
        self, directory: Path, flavour: Flavour | None = None, **settings: str | int
    ) -> None:
        super().__init__(flavour or Headrace(), directory, {})
        self.authority = Authority()
        self.certificate = directory / "broker.pem"
        self.trusted = self.authority.write(directory / "authority.pem")
        self.authority.issue().write(self.certificate)
        given = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.settings = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.certificate),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
            "offsets.topic.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self._listeners(),
            **given,
        }

    def _listeners(self) -> dict[str, str]:
        """Return the listeners; Kafka needs one of a controller, which no client sees."""
        if self.flavour.name == "headrace":
            return {"listeners": f"SSL://{self.address}"}
        return {
            "listeners": f"SSL://{self.address},CONTROLLER://{HOST}:{self.controller_port}",
            "listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "SSL",
        }

    def librdkafka(self, client: Owned | None = None) -> dict[str, Any]:
        """Return settings of librdkafka, with the certificate of a client if it has one."""
        own = {}
        if client is not None:
            own = {
                "ssl.certificate.pem": client.certificate_pem,
                "ssl.key.pem": client.key_pem(),
            }
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.trusted),
            **own,
        }

    def java(self, client: Owned | None = None) -> Path:
        """Write the properties of a Java client, and return their file."""
        properties = {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
        }
        if client is not None:
            keys = client.write(self.directory / "java-client.pem")
            properties |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(keys)}
        path = self.directory / "client.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        return path
