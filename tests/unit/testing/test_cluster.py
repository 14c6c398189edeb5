"""The tests' cluster: what it plans before any node runs."""

from pathlib import Path

import pytest

from headrace.settings.properties import read
from headrace.testing.cluster import ClusterProcess
from headrace.testing.process import BrokerFailed


def test_three_nodes_have_ports_that_stay(tmp_path: Path) -> None:
    cluster = ClusterProcess(tmp_path)
    assert [node.id for node in cluster.nodes] == [1, 2, 3]
    assert cluster.node(2) is cluster.nodes[1]
    assert len({node.port for node in cluster.nodes}) == 3
    assert cluster.bootstrap_servers == ",".join(node.bootstrap_servers for node in cluster.nodes)
    assert ClusterProcess(tmp_path).bootstrap_servers == cluster.bootstrap_servers


def test_nothing_serves_before_the_start(tmp_path: Path) -> None:
    cluster = ClusterProcess(tmp_path)
    assert cluster.serving == ()
    cluster.kill()
    assert not cluster.node(1).is_paused


def test_settings_apply_to_every_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "headrace.testing.cluster.node_command", lambda path: ["sh", "-c", "echo no >&2; exit 1"]
    )
    with pytest.raises(BrokerFailed, match="node-1 ended while it started"):
        ClusterProcess(tmp_path, {"num.partitions": 6}).__enter__()
    for node in (1, 2, 3):
        properties = read(str(tmp_path / "data" / f"node-{node}.properties"))
        assert properties["num.partitions"] == "6"
        assert properties["min.insync.replicas"] == "2"
