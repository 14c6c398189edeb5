"""Nodes with an authorizer: one listener for the super user, and one for users with a password."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headrace.client.admin import Admin
from headrace.security.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from tests.processes.nodes import HOST, Flavour, Node, eventually, free_port

PASSWORD = "not a secret"
USER = "ada"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

Rule = tuple[Operation, ResourceType] | tuple[Operation, ResourceType, str]
"""A right of the user, to all resources of a type or to one of them."""


class GuardedNode(Node):
    """A Headrace or a Kafka where the user has no right at first."""

    def __init__(self, flavour: Flavour, directory: Path) -> None:
        super().__init__(flavour, directory, {})
        self.login_port = free_port()
        listeners = [f"PLAINTEXT://{self.address}", f"SASL://{HOST}:{self.login_port}"]
        if flavour.name == "kafka":
            listeners.append(f"CONTROLLER://{HOST}:{self.controller_port}")
        users = f'user_{USER}="{PASSWORD}"'
        self.settings |= {
            "listeners": ",".join(listeners),
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": f"{_PLAIN} required {users};",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "group.initial.rebalance.delay.ms": "0",
            "share.coordinator.state.topic.num.partitions": "1",
        }

    def client(self, **more: str) -> dict[str, Any]:
        """Settings of librdkafka for the user; names with underscores for dots."""
        return {
            "bootstrap.servers": f"{HOST}:{self.login_port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in more.items()},
        }

    def allow(self, rules: Iterable[Rule]) -> None:
        """Replace all rules of the user, and wait until they count."""
        expected = {_binding(*rule) for rule in rules}
        with Admin(self.address, timeout_s=20) as admin:
            admin.acls.delete(AclFilter())
            outcomes = admin.acls.create(sorted(expected))
            assert [one.error for one in outcomes if one.error] == []
            eventually(lambda: set(admin.acls.find(AclFilter())), expect=expected.__eq__)


def _binding(operation: Operation, kind: ResourceType, name: str = "") -> AclBinding:
    usual = CLUSTER_NAME if kind is ResourceType.CLUSTER else WILDCARD
    pattern, allow = PatternType.LITERAL, Permission.ALLOW
    return AclBinding(kind, name or usual, pattern, f"User:{USER}", "*", operation, allow)
