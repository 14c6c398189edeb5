"""Addresses and names of resources."""

import msgspec
import pytest
from starlette.requests import Request

from headrace.client.descriptions import QuorumDescription
from headrace.rest.v3.resources import (
    KINDS,
    ClusterData,
    Links,
    PartitionData,
    QuorumData,
    Related,
    Resource,
    shown_type,
)


def links(host_name: str = "") -> Links:
    scope = {
        "type": "http",
        "scheme": "https",
        "server": ("127.0.0.1", 8082),
        "path": "/v3/clusters",
        "query_string": b"",
        "headers": [(b"host", b"proxy.example:8082")],
    }
    return Links(Request(scope), "c-1", host_name)


def test_addresses_are_those_that_the_caller_used() -> None:
    assert links().clusters == "https://proxy.example:8082/v3/clusters"
    assert links().url("topics/{topic}/partitions/{partition}", {"topic": "t", "partition": 0}) == (
        "https://proxy.example:8082/v3/clusters/c-1/topics/t/partitions/0"
    )


def test_the_name_of_the_proxy_overrides_the_host() -> None:
    assert links("own.example").url("") == "https://own.example:8082/v3/clusters/c-1"


def test_parts_of_an_address_are_quoted() -> None:
    assert links().url("consumer-groups/{g}", {"g": "a/b c"}).endswith("/consumer-groups/a%2Fb%20c")
    assert (
        links()
        .url("acls", query={"principal": "User:a&b"})
        .endswith("/acls?principal=User%3Aa%26b")
    )


def test_resources_have_a_name_among_all() -> None:
    quorum = QuorumData(leader_id=1, leader_epoch=2, high_watermark=3, replicas=[])
    assert links().shown(quorum)["metadata"].resource_name == "crn:///kafka=c-1/quorum"
    cluster = links().shown(ClusterData(controller_id=None))
    assert cluster["metadata"].resource_name == "crn:///kafka=c-1"


@pytest.mark.parametrize("leader", [0, None])
def test_a_related_resource_is_shown_by_its_address(leader: int | None) -> None:
    shown = links().shown(PartitionData(topic_name="a b", partition_id=7, leader_id=leader))
    base = "https://proxy.example:8082/v3/clusters/c-1/topics/a%20b/partitions/7"
    assert shown["metadata"].self_ == base
    assert shown["replicas"] == Related(f"{base}/replicas")
    assert shown["leader"] == (None if leader is None else Related(f"{base}/replicas/0"))
    assert "leader_id" not in shown


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_shown_as_it_is_described(kind: type[Resource]) -> None:
    values: dict[object, object] = {int: 1, bool: True, str: "x", int | None: 1}
    fields = msgspec.structs.fields(kind)
    shown = links().shown(kind(**{one.name: values.get(one.type) for one in fields}))
    assert shown.keys() == {one.name for one in msgspec.structs.fields(shown_type(kind))}


def test_a_resource_takes_the_fields_of_a_value_of_the_client() -> None:
    found = QuorumDescription(leader=1, leader_epoch=2, high_watermark=3, replicas=[])
    assert QuorumData.of(found, high_watermark=4) == QuorumData(
        leader_id=1, leader_epoch=2, high_watermark=4, replicas=[]
    )
