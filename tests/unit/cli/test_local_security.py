"""The files, properties and settings of `headrace up --secure`."""

import datetime as dt
import os
from collections.abc import Collection
from itertools import count
from pathlib import Path

import pytest

from headrace.cli.local_cluster import (
    LocalCluster,
    SecurityChanged,
    Shape,
    ShapeChanged,
    check_open,
    node_properties,
    planned,
    write_properties,
)
from headrace.cli.local_security import LocalSecurity, hosts_of, prepare, prepare_cluster
from headrace.cli.up_secure import secured_properties
from headrace.client.security import Security
from headrace.errors import InvalidConfig
from headrace.security.certificates import read_certificates
from headrace.security.sasl.scram import Mechanism
from headrace.security.scram_credentials import MECHANISM_IDS
from headrace.settings.broker_loading import load
from headrace.settings.properties import read

NOW = dt.datetime.now(dt.UTC)
ADDRESS = "127.0.0.1:9092"


def secured(data: Path, **properties: str) -> tuple[dict[str, str], LocalSecurity]:
    return secured_properties(properties, str(data), ADDRESS)


def plan(data: Path, *, is_secured: bool = True, nodes: int = 3) -> LocalCluster:
    ports = count(20_000)

    def free_port(taken: Collection[int]) -> int:
        return next(port for port in ports if port not in taken)

    ids = (f"{number:022d}" for number in count(1))
    return planned(
        str(data),
        Shape.of_nodes(nodes),
        None,
        ADDRESS,
        free_port,
        lambda: next(ids),
        is_secured=is_secured,
    )


def test_secrets_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    """SEC-9: files of secrets, and the settings that contain them."""
    secured(tmp_path)
    folder = tmp_path / "security"
    assert folder.stat().st_mode & 0o777 == 0o700
    open_files = {path.name for path in folder.iterdir() if path.stat().st_mode & 0o077}
    assert open_files == {"ca.crt", "node-1.crt"}
    assert (tmp_path / "node-1.properties").stat().st_mode & 0o777 == 0o600


def test_the_next_start_has_the_same_secrets(tmp_path: Path) -> None:
    first, before = secured(tmp_path)
    second, after = secured(tmp_path)
    assert first == second
    assert (before.password, before.token_key) == (after.password, after.token_key)
    assert [one.reason for one in before.certificates] == ["new", "new"]
    assert [one.reason for one in after.certificates] == [None, None]


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    _, security = secured(tmp_path)
    shown = f"{security} {list(security.announced_lines(ADDRESS))}"
    assert security.password not in shown
    assert security.token_key not in shown


def test_a_changed_password_of_the_admin_is_kept(tmp_path: Path) -> None:
    _, security = secured(tmp_path)
    path = Path(security.client_path)
    path.write_text(path.read_text().replace(security.password, "changed"))
    assert secured(tmp_path)[1].password == "changed"


def test_the_settings_are_valid_for_nodes_and_clients(tmp_path: Path) -> None:
    """SEC-2, SEC-5, SEC-7: TLS, SCRAM and an authorizer, with the admin as the super user."""
    properties, security = secured(tmp_path)
    settings, _ = load(properties)
    assert settings.protocols["SASL_SSL"] == "SASL_SSL"
    assert settings.super_users == "User:admin"
    assert settings.directories == (str(tmp_path / "node-1"),)
    for path in (security.client_path, security.java_path):
        found = Security.of(read(path))
        assert found.sasl is not None
        assert found.tls is not None
        assert (found.sasl.username, found.sasl.password) == ("admin", security.password)
        assert found.tls.ca_location == security.authority_path


def test_the_first_user_is_the_admin(tmp_path: Path) -> None:
    record = secured(tmp_path)[1].admin_record()
    assert (record.name, record.mechanism) == ("admin", MECHANISM_IDS[Mechanism.SHA_512])


def test_super_users_may_be_added(tmp_path: Path) -> None:
    properties, _ = secured(tmp_path, **{"super.users": "User:root"})
    assert properties["super.users"] == "User:admin;User:root"


def test_properties_that_the_option_chooses_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="listeners is chosen by --secure"):
        secured(tmp_path, listeners="PLAINTEXT://:9092")


def test_certificates_have_the_names_of_the_listener(tmp_path: Path) -> None:
    secured_properties(
        {"advertised.listeners": "SASL_SSL://kafka.lan:9092"}, str(tmp_path), "10.0.0.7:9092"
    )
    (facts,) = read_certificates((tmp_path / "security" / "node-1.crt").read_bytes())
    assert facts.names == ("localhost", "127.0.0.1", "::1", "10.0.0.7", "kafka.lan")


def test_every_interface_has_the_names_of_the_machine() -> None:
    assert hosts_of("", "") == hosts_of("0.0.0.0", "")
    assert os.uname().nodename in hosts_of("", "")


def test_open_and_secured_nodes_do_not_share_data(tmp_path: Path) -> None:
    """SEC-1: a secured node does not become open by a forgotten option."""
    secured(tmp_path / "closed")
    with pytest.raises(SecurityChanged, match="was made by --secure"):
        check_open(str(tmp_path / "closed"))
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "meta.properties").touch()
    with pytest.raises(SecurityChanged, match="was made without --secure"):
        secured(tmp_path / "open")


def test_the_plan_of_a_cluster_has_ports_between_nodes(tmp_path: Path) -> None:
    first = plan(tmp_path)
    prepare_cluster(first, NOW)
    again = plan(tmp_path)
    assert [node.internal_port for node in again.nodes] == [
        node.internal_port for node in first.nodes
    ]
    ports = [
        port
        for node in first.nodes
        for port in (node.port, node.controller_port, node.internal_port)
    ]
    assert len(set(ports)) == 9


def test_nodes_of_a_cluster_show_each_other_certificates(tmp_path: Path) -> None:
    """SEC-3: the listeners between nodes require certificates, and the nodes are super users."""
    cluster = plan(tmp_path)
    security = prepare_cluster(cluster, NOW)
    node = cluster.nodes[1]
    properties = node_properties(cluster, node, {"num.partitions": "3"}, None, security)
    assert properties["listeners"].split(",") == [
        f"SASL_SSL://127.0.0.1:{node.port}",
        f"INTERNAL://127.0.0.1:{node.internal_port}",
        f"CONTROLLER://127.0.0.1:{node.controller_port}",
    ]
    assert properties["listener.name.controller.ssl.client.auth"] == "required"
    assert properties["ssl.keystore.location"].endswith("security/node-2.pem")
    assert properties["super.users"] == "User:admin;User:CN=node-1;User:CN=node-2;User:CN=node-3"
    assert properties["num.partitions"] == "3"
    settings, _ = load(properties)
    assert settings.protocols["INTERNAL"] == "SSL"


def test_properties_of_secured_nodes_are_secret(tmp_path: Path) -> None:
    cluster = plan(tmp_path)
    write_properties(cluster, {}, None, prepare_cluster(cluster, NOW))
    for node in cluster.nodes:
        assert Path(cluster.properties_path(node)).stat().st_mode & 0o777 == 0o600


def test_a_cluster_stays_open_or_secured(tmp_path: Path) -> None:
    prepare_cluster(plan(tmp_path / "closed"), NOW)
    with pytest.raises(SecurityChanged, match="was made by --secure"):
        plan(tmp_path / "closed", is_secured=False)
    plan(tmp_path / "open", is_secured=False)
    with pytest.raises(SecurityChanged, match="was made without --secure"):
        plan(tmp_path / "open")


def test_a_cluster_does_not_use_the_data_of_a_secured_node(tmp_path: Path) -> None:
    prepare(str(tmp_path), ("node-1",), (), NOW).write_settings(ADDRESS)
    with pytest.raises(ShapeChanged, match="holds a single node"):
        plan(tmp_path)
