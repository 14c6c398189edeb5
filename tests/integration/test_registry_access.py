"""A registry that authenticates: passwords over TLS, from clients and between its instances."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from headrace.http.users import PasswordHash
from tests.processes.nodes import Node, eventually
from tests.processes.registries import USER, RegistryProcess


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """Return an authority's file; next to it are a certificate, its key and a user."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    users = tmp_path / "users"
    users.write_text(f"ada:{PasswordHash.of('analytical')}\n")
    users.chmod(0o600)
    return tmp_path / "ca.pem"


@pytest.fixture
def instances(node: Node, authority: Path) -> Iterator[list[RegistryProcess]]:
    folder = authority.parent
    own = {
        "kafkastore.topic": f"_schemas-{folder.name}",
        "schema.registry.group.id": folder.name,
    }
    options = [
        *("--tls-certificate", str(folder / "server.pem"), "--tls-ca", str(authority)),
        *("--user-file", str(folder / "users")),
    ]
    trusted = ssl.create_default_context(cafile=authority)
    started = [
        RegistryProcess(
            node.address,
            folder / f"registry-{number}.log",
            own,
            options,
            verify=trusted,
            auth=("ada", "analytical"),
        )
        for number in range(2)
    ]
    yield started
    for one in started:
        one.end()


def client_of(registry: RegistryProcess, authority: Path, password: str) -> SchemaRegistryClient:
    return SchemaRegistryClient(
        {
            "url": registry.url,
            "ssl.ca.location": str(authority),
            "basic.auth.user.info": f"ada:{password}",
            "max.retries": 0,
        }
    )


def test_clients_with_the_password_may_write_at_any_instance(
    instances: list[RegistryProcess], authority: Path
) -> None:
    for one in instances:
        one.wait_until_ready()
    eventually(lambda: sum(one.is_leader for one in instances), expect=lambda count: count == 1)
    follower = next(one for one in instances if not one.is_leader)
    assert follower.url.startswith("https://")
    with client_of(follower, authority, "analytical") as client:
        assert client.register_schema("user-value", Schema(USER, "AVRO")) == 1
        assert client.get_subjects() == ["user-value"]


def test_clients_without_the_password_are_refused(
    instances: list[RegistryProcess], authority: Path
) -> None:
    with (
        client_of(instances[0], authority, "wrong") as client,
        pytest.raises(SchemaRegistryError) as error,
    ):
        client.get_subjects()
    assert error.value.http_status_code == 401
