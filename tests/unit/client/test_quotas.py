"""Quotas by the wire."""

import pytest

from headrace.client.admin import Admin
from headrace.client.cluster import Cluster
from headrace.client.quotas import ClientQuota, Match, QuotaFilter
from headrace.errors import InvalidRequest
from headrace.protocol.message import Message
from headrace.protocol.schemas.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)
from headrace.protocol.schemas.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from headrace.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from tests.unit.client.scripted import connected, knowing_all


class Limiting:
    """A broker with one quota, which takes changes of users and refuses others."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[Message] = []
        opened = connected(knowing_all(lambda request, _: self.answer(request)))[0]
        monkeypatch.setattr(Cluster, "_open", lambda self, node_id: opened)
        self.quotas = Admin("broker:9092", timeout_s=1).quotas

    def answer(self, request: Message) -> Message:
        if isinstance(request, MetadataRequest):
            return MetadataResponse()
        self.asked.append(request)
        if isinstance(request, DescribeClientQuotasRequest):
            entity = [EntityData("user", "ada"), EntityData("client-id", None)]
            entry = EntryData(entity, [ValueData("request_percentage", 12.5)])
            return DescribeClientQuotasResponse(entries=[entry])
        assert isinstance(request, AlterClientQuotasRequest)
        parts = [
            AlterClientQuotasResponseEntityData(one.entity_type, one.entity_name)
            for one in request.entries[0].entity
        ]
        refused = all(one.entity_type != "user" for one in parts)
        code, text = (InvalidRequest.code, "users only") if refused else (0, None)
        return AlterClientQuotasResponse(
            entries=[AlterClientQuotasResponseEntryData(code, text, parts)]
        )


def test_quotas_are_returned_by_entity(monkeypatch: pytest.MonkeyPatch) -> None:
    limiting = Limiting(monkeypatch)
    filters = [QuotaFilter("user", Match.EXACT, "ada"), QuotaFilter("client-id", Match.DEFAULT)]
    assert limiting.quotas.describe(filters) == [
        ClientQuota({"user": "ada", "client-id": None}, {"request_percentage": 12.5})
    ]
    (asked,) = limiting.asked
    assert isinstance(asked, DescribeClientQuotasRequest)
    assert [(one.entity_type, one.match_type, one.match) for one in asked.components] == [
        ("user", 0, "ada"),
        ("client-id", 1, None),
    ]


def test_a_quota_is_set_and_another_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    limiting = Limiting(monkeypatch)
    found = limiting.quotas.alter({"user": None}, {"a": 1.5, "b": None})
    (asked,) = limiting.asked
    assert isinstance(asked, AlterClientQuotasRequest)
    assert (found.name, found.error) == ("user (default)", None)
    assert [(one.key, one.value, one.remove) for one in asked.entries[0].ops] == [
        ("a", 1.5, False),
        ("b", 0.0, True),
    ]


def test_a_rejected_change_names_the_entity(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Limiting(monkeypatch).quotas.alter({"ip": "10.0.0.1"}, {"a": 1.0})
    assert str(found) == "ip 10.0.0.1: INVALID_REQUEST: users only"
