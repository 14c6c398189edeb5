"""Responses with one error for everything that a request names, derived from the definitions."""

from typing import Any

import msgspec
import pytest

from headrace.errors import InvalidRequest, KafkaError
from headrace.protocol.refusals import refusal_of
from headrace.protocol.schemas import (
    alter_client_quotas,
    alter_user_scram_credentials,
    consumer_group_describe,
    describe_configs,
    heartbeat,
    list_offsets,
    write_txn_markers,
)

CODE = InvalidRequest.code


def refused(request: Any, response_type: Any, error: KafkaError | None = None) -> Any:
    response = refusal_of(response_type)(request, error or InvalidRequest("why"), 0)
    return msgspec.to_builtins(response)


def test_a_code_at_the_top_is_set_alone() -> None:
    request = heartbeat.HeartbeatRequest("g", 1, "m")
    assert refused(request, heartbeat.HeartbeatResponse)["error_code"] == CODE


def test_every_partition_gets_the_code_and_no_other_field_of_the_request() -> None:
    partitions = [list_offsets.ListOffsetsPartition(index, 7, 1234) for index in (3, 4)]
    request = list_offsets.ListOffsetsRequest(
        topics=[list_offsets.ListOffsetsTopic("orders", partitions)]
    )
    (topic,) = refused(request, list_offsets.ListOffsetsResponse)["topics"]
    assert topic["name"] == "orders"
    assert [(one["partition_index"], one["error_code"]) for one in topic["partitions"]] == [
        (3, CODE),
        (4, CODE),
    ]
    assert {one["timestamp"] for one in topic["partitions"]} == {-1}


def test_plain_keys_become_the_field_that_identifies_an_item() -> None:
    request = consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=["a", "b"])
    groups = refused(request, consumer_group_describe.ConsumerGroupDescribeResponse)["groups"]
    assert [(one["group_id"], one["error_message"]) for one in groups] == [
        ("a", "why"),
        ("b", "why"),
    ]


def test_an_error_code_above_ends_the_descent() -> None:
    resource = describe_configs.DescribeConfigsResource(2, "orders", ["retention.ms"])
    request = describe_configs.DescribeConfigsRequest(resources=[resource])
    (result,) = refused(request, describe_configs.DescribeConfigsResponse)["results"]
    assert (result["resource_type"], result["resource_name"]) == (2, "orders")
    assert (result["error_code"], result["configs"]) == (CODE, [])


def test_codes_are_set_at_the_third_level() -> None:
    topic = write_txn_markers.WritableTxnMarkerTopic("orders", [5])
    marker = write_txn_markers.WritableTxnMarker(producer_id=9, topics=[topic])
    request = write_txn_markers.WriteTxnMarkersRequest(markers=[marker])
    (found,) = refused(request, write_txn_markers.WriteTxnMarkersResponse)["markers"]
    assert found["producer_id"] == 9
    assert found["topics"] == [
        {"name": "orders", "partitions": [{"partition_index": 5, "error_code": CODE}]}
    ]


@pytest.mark.parametrize("resources", [None, []])
def test_a_request_that_names_nothing_gets_an_empty_response(resources: Any) -> None:
    request = describe_configs.DescribeConfigsRequest(resources=resources)
    assert refused(request, describe_configs.DescribeConfigsResponse)["results"] == []


def test_each_user_of_a_request_about_credentials_gets_the_code_once() -> None:
    request = alter_user_scram_credentials.AlterUserScramCredentialsRequest(
        [alter_user_scram_credentials.ScramCredentialDeletion(name, 1) for name in ("bob", "ada")],
        [alter_user_scram_credentials.ScramCredentialUpsertion("bob", 2)],
    )
    response = refused(request, alter_user_scram_credentials.AlterUserScramCredentialsResponse)
    assert response["results"] == [
        {"user": name, "error_code": CODE, "error_message": "why"} for name in ("ada", "bob")
    ]


def test_each_entity_of_a_request_about_quotas_gets_the_code() -> None:
    parts = [
        alter_client_quotas.AlterClientQuotasRequestEntityData("user", "ada"),
        alter_client_quotas.AlterClientQuotasRequestEntityData("client-id", None),
    ]
    request = alter_client_quotas.AlterClientQuotasRequest(
        [alter_client_quotas.AlterClientQuotasRequestEntryData(parts)]
    )
    (entry,) = refused(request, alter_client_quotas.AlterClientQuotasResponse)["entries"]
    assert (entry["error_code"], entry["error_message"]) == (CODE, "why")
    assert [tuple(part.values()) for part in entry["entity"]] == [
        ("user", "ada"),
        ("client-id", None),
    ]
