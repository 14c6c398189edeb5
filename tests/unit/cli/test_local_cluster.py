"""The plan of a cluster on one machine: ports, properties and order of stopping."""

from collections.abc import Collection
from itertools import count
from pathlib import Path

import pytest

from headrace.cli.local_cluster import (
    LocalCluster,
    Shape,
    ShapeChanged,
    check_single,
    new_plan,
    node_properties,
    plan_text,
    planned,
    read_plan,
    replication_defaults,
    stop_order,
    write_properties,
)
from headrace.errors import HeadraceError, InvalidConfig
from headrace.settings.broker_loading import load
from headrace.settings.properties import read

THREE = Shape.of_nodes(3)


def lowest_free(taken: Collection[int]) -> int:
    return next(port for port in count(20_000) if port not in taken)


class IdSource:
    """Ids that a test can read."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self) -> str:
        return f"Id{next(self._numbers):020}"


def plan_of(shape: Shape, listen: str = "127.0.0.1:9092", data: str = "data") -> LocalCluster:
    return new_plan(data, shape, listen, lowest_free, IdSource())


def plan_in(directory: Path, shape: Shape = THREE, listen: str | None = None) -> LocalCluster:
    return planned(str(directory), shape, listen, "127.0.0.1:9092", lowest_free, IdSource())


@pytest.mark.parametrize(
    ("shape", "controllers"),
    [
        (Shape.of_nodes(3), 3),
        (Shape.of_nodes(4), 3),
        (Shape.of_nodes(5), 5),
        (Shape.of_nodes(9), 5),
        (Shape.of_brokers(4), 1),
    ],
)
def test_controllers_are_odd_and_few(shape: Shape, controllers: int) -> None:
    cluster = plan_of(shape)
    assert [node.id for node in cluster.controllers] == list(range(1, controllers + 1))
    assert cluster.shape == shape


def test_clients_ports_follow_each_other_and_controllers_take_free_ones() -> None:
    cluster = plan_of(THREE)
    assert cluster.local_addresses == "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"
    assert [node.controller_port for node in cluster.nodes] == [20_000, 20_001, 20_002]


def test_port_zero_takes_free_ports_for_all() -> None:
    cluster = plan_of(THREE, "127.0.0.1:0")
    ports = [port for node in cluster.nodes for port in (node.port, node.controller_port)]
    assert sorted(map(int, filter(None, ports))) == list(range(20_000, 20_006))


def test_ports_beyond_the_last_are_refused() -> None:
    with pytest.raises(InvalidConfig, match="do not suffice"):
        plan_of(THREE, "127.0.0.1:65535")


def test_a_plan_is_the_same_at_the_second_start(tmp_path: Path) -> None:
    first = plan_in(tmp_path)
    assert plan_in(tmp_path) == first == read_plan(str(tmp_path))


def test_clients_ports_can_move_and_controllers_stay(tmp_path: Path) -> None:
    first = plan_in(tmp_path)
    second = plan_in(tmp_path, listen="0.0.0.0:19092")
    assert second.local_addresses == "127.0.0.1:19092,127.0.0.1:19093,127.0.0.1:19094"
    assert second.host == ""
    assert second.first_voters == first.first_voters
    assert plan_in(tmp_path) == second
    assert plan_in(tmp_path, listen="127.0.0.1:0").local_addresses == second.local_addresses


@pytest.mark.parametrize("shape", [Shape.of_nodes(5), Shape.of_brokers(3)])
def test_another_number_of_nodes_is_refused_with_both_ways_out(
    tmp_path: Path, shape: Shape
) -> None:
    plan_in(tmp_path)
    with pytest.raises(ShapeChanged) as caught:
        plan_in(tmp_path, shape)
    assert "start it with --nodes 3, or choose another --data" in str(caught.value)


def test_a_single_node_and_a_cluster_do_not_share_a_directory(tmp_path: Path) -> None:
    check_single(str(tmp_path / "new"))
    plan_in(tmp_path / "cluster", Shape.of_brokers(2))
    with pytest.raises(ShapeChanged, match="--brokers 2"):
        check_single(str(tmp_path / "cluster"))
    (tmp_path / "single").mkdir()
    (tmp_path / "single" / "meta.properties").touch()
    with pytest.raises(ShapeChanged, match="holds a single node"):
        plan_in(tmp_path / "single")


@pytest.mark.parametrize("text", ["", "cluster.id=x", "ports=1,2\ncontrollers=1@h\nhost=\n"])
def test_a_damaged_plan_is_reported(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.properties").write_text(text)
    with pytest.raises(HeadraceError, match="is damaged"):
        read_plan(str(tmp_path))


def test_the_stored_plan_names_the_first_voters_as_formatting_takes_them() -> None:
    assert "controllers=1@127.0.0.1:20000:Id00000000000000000001," in plan_text(plan_of(THREE))


@pytest.mark.parametrize("shape", [THREE, Shape.of_nodes(4), Shape.of_brokers(4)])
def test_every_node_has_valid_settings(shape: Shape) -> None:
    cluster = plan_of(shape)
    for node in cluster.nodes:
        settings, warnings = load(node_properties(cluster, node, {}))
        assert warnings == []
        assert settings.node_id == node.id
        assert settings.is_controller == (node.id <= shape.controllers)
        assert settings.is_broker
        assert not settings.is_single_node
        assert len(settings.quorum_bootstrap_servers) == shape.controllers
        assert settings.directories == (f"data/node-{node.id}",)


def test_topics_survive_a_node_unless_brokers_share_one_machines_work() -> None:
    survivors = replication_defaults(THREE)
    assert survivors["default.replication.factor"] == "3"
    assert survivors["min.insync.replicas"] == "2"
    assert set(replication_defaults(Shape.of_brokers(4)).values()) == {"1"}


def test_shared_properties_override_the_defaults() -> None:
    cluster = plan_of(THREE)
    properties = node_properties(cluster, cluster.nodes[1], {"min.insync.replicas": "1"}, 9644)
    assert properties["min.insync.replicas"] == "1"
    assert properties["headrace.metrics.port"] == "9645"


@pytest.mark.parametrize("name", ["node.id", "log.dirs", "listeners"])
def test_a_property_of_one_node_is_refused_for_all(name: str) -> None:
    cluster = plan_of(THREE)
    with pytest.raises(InvalidConfig, match=f"{name} is chosen for each node"):
        node_properties(cluster, cluster.nodes[0], {name: "1"})


def test_each_node_has_a_file_that_starts_it(tmp_path: Path) -> None:
    cluster = plan_in(tmp_path)
    write_properties(cluster, {"num.partitions": "6"})
    properties = read(str(tmp_path / "node-2.properties"))
    assert properties == node_properties(cluster, cluster.nodes[1], {"num.partitions": "6"})


@pytest.mark.parametrize(
    ("shape", "groups"),
    [
        (Shape.of_nodes(3), [[3], [1, 2]]),
        (Shape.of_nodes(4), [[4], [3], [1, 2]]),
        (Shape.of_nodes(5), [[5], [4], [1, 2, 3]]),
        (Shape.of_brokers(3), [[3], [2], [1]]),
    ],
)
def test_nodes_stop_one_by_one_while_a_majority_stays(
    shape: Shape, groups: list[list[int]]
) -> None:
    assert stop_order(plan_of(shape)) == groups
