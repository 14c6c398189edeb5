"""Addresses and names of resources."""

from starlette.requests import Request

from headrace.rest.v3.resources import Links


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
    assert links().url("topics", "t", "partitions", 0) == (
        "https://proxy.example:8082/v3/clusters/c-1/topics/t/partitions/0"
    )


def test_a_name_of_the_proxy_wins() -> None:
    assert links("own.example").url() == "https://own.example:8082/v3/clusters/c-1"


def test_parts_of_an_address_are_quoted() -> None:
    assert links().url("consumer-groups", "a/b c").endswith("/consumer-groups/a%2Fb%20c")
    assert links().url("acls", principal="User:a&b").endswith("/acls?principal=User%3Aa%26b")


def test_resources_have_a_name_among_all() -> None:
    metadata = links().metadata("topics", "t", crn="topic=t")
    assert metadata.resource_name == "crn:///kafka=c-1/topic=t"
    assert links().metadata(crn="").resource_name == "crn:///kafka=c-1"
