"""Nodes whose listeners demand logins: one node, and a cluster of three."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.processes.nodes import HOST, Headrace, Node, free_port, random_cluster_id

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
GSSAPI_MODULE = "com.sun.security.auth.module.Krb5LoginModule"


class SaslNode(Node):
    """A node with a listener SASL for clients, and a plain one for the test itself."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        super().__init__(Headrace(), directory, settings)
        self.sasl_port = free_port()
        self.settings.update(
            {
                "listeners": f"PLAINTEXT://{self.address},SASL://{self.sasl_address}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
                "inter.broker.listener.name": "PLAINTEXT",
            }
        )

    @property
    def sasl_address(self) -> str:
        return f"{HOST}:{self.sasl_port}"

    def client(self, mechanism: str, **more: str) -> dict[str, Any]:
        """Settings of librdkafka; names with underscores for dots."""
        given = {name.replace("_", "."): value for name, value in more.items()}
        return {
            "bootstrap.servers": self.sasl_address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            **given,
        }


class ClusterNode(Node):
    """One node of a cluster that is formatted and described by a properties file."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        super().__init__(Headrace(), directory, settings)
        self.properties = directory / "server.properties"

    def launch(self) -> None:
        text = "".join(f"{name}={value}\n" for name, value in self.settings.items())
        self.properties.write_text(text)
        program = str(Path(sys.executable).with_name("headrace"))
        with self.log_path.open("ab") as output:
            self.process = subprocess.Popen(
                [program, "up", "--config", str(self.properties)],
                stdout=output,
                stderr=subprocess.STDOUT,
            )


def cluster_of_three(
    directory: Path, properties: Mapping[str, str], format_options: tuple[str, ...] = ()
) -> list[ClusterNode]:
    """Format three nodes whose listeners IN (brokers) and CTL (controllers) demand logins."""
    cluster_id = random_cluster_id()
    nodes = [ClusterNode(directory / f"node-{number}", {}) for number in (1, 2, 3)]
    ids = [random_cluster_id() for _ in nodes]
    addresses = [f"{HOST}:{node.controller_port}" for node in nodes]
    voters = ",".join(
        f"{number}@{address}:{directory_id}"
        for number, (address, directory_id) in enumerate(zip(addresses, ids, strict=True), 1)
    )
    program = str(Path(sys.executable).with_name("headrace"))
    for number, node in enumerate(nodes, 1):
        node.settings = {
            "node.id": str(number),
            "process.roles": "broker,controller",
            "log.dirs": str(node.data),
            "listeners": f"IN://{node.address},CTL://{addresses[number - 1]}",
            "listener.security.protocol.map": "IN:SASL_PLAINTEXT,CTL:SASL_PLAINTEXT",
            "controller.listener.names": "CTL",
            "inter.broker.listener.name": "IN",
            "controller.quorum.bootstrap.servers": ",".join(addresses),
            "offsets.topic.replication.factor": "3",
            "offsets.topic.num.partitions": "1",
            **properties,
        }
        text = "".join(f"{name}={value}\n" for name, value in node.settings.items())
        node.properties.write_text(text)
        options = ["--config", str(node.properties), "--cluster-id", cluster_id]
        subprocess.run(
            [program, "format", *options, "--initial-controllers", voters, *format_options],
            check=True,
            capture_output=True,
        )
    return nodes
