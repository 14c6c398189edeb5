"""The same requests about users, quotas and tokens to Headrace and to Kafka get the same codes."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from headrace.client.admin import Admin
from headrace.protocol.api_messages import response_type_of
from headrace.protocol.message import Message
from headrace.protocol.schemas import (
    alter_client_quotas,
    alter_user_scram_credentials,
    create_delegation_token,
    describe_client_quotas,
    describe_delegation_token,
    describe_user_scram_credentials,
    expire_delegation_token,
    renew_delegation_token,
)
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import Flavour, Headrace, Kafka, Node

BYTES, PERCENT, RATE = "producer_byte_rate", "request_percentage", "connection_creation_rate"
ALTERED: list[tuple[dict[str, str | None], list[tuple[str, float | None]]]] = [
    ({"user": "ada"}, [(BYTES, 1.0), (PERCENT, 0.5)]),
    ({"user": None}, [(BYTES, 2.0)]),
    ({"user": "ada", "client-id": None}, [(BYTES, 3.0)]),
    ({"client-id": "app"}, [("controller_mutation_rate", 0.25)]),
    ({"ip": "10.0.0.7"}, [(RATE, 4.0)]),
    ({"ip": None}, [(RATE, 5.0)]),
    ({"user": "b1"}, [(BYTES, 0.0)]),
    ({"user": "b2"}, [(BYTES, -1.0)]),
    ({"user": "b3"}, [(BYTES, 1.5)]),
    ({"user": "b4"}, [(BYTES, 2.0**65)]),
    ({"user": "b5"}, [(BYTES, 2.0**63)]),
    ({"user": "b6"}, [(RATE, 1.0)]),
    ({"user": "b7"}, [("nonsense", None)]),
    ({"user": "b8"}, [("nonsense", 1.0)]),
    ({"user": "b9"}, [(BYTES, 1.0), (BYTES, 2.0)]),
    ({"user": ""}, [(BYTES, 1.0)]),
    ({"group": "g"}, [(BYTES, 1.0)]),
    ({}, [(BYTES, 1.0)]),
    ({"ip": "10.0.0.8", "user": "ada"}, [(RATE, 1.0)]),
    ({"ip": "10.0.0.8"}, [(BYTES, 1.0)]),
    ({"ip": "10.0.0.9"}, [(RATE, 2.0**31)]),
    ({"ip": "not an address"}, [(RATE, 1.0)]),
    ({"user": "empty"}, []),
]
FILTERS: list[list[tuple[str, int, str | None]]] = [
    [],
    [("user", 0, "ada")],
    [("user", 1, None)],
    [("user", 2, None)],
    [("client-id", 2, None)],
    [("user", 0, "ada"), ("client-id", 1, None)],
    [("ip", 2, None)],
    [("ip", 0, "10.0.0.7")],
    [("user", 0, None)],
    [("user", 1, "ada")],
    [("user", 2, "ada")],
    [("user", 3, None)],
    [("user", 2, None), ("user", 1, None)],
    [("ip", 2, None), ("user", 2, None)],
    [("", 2, None)],
    [("group", 2, None)],
]
CREDENTIALS: list[list[tuple[str, int, int | None]]] = [
    [("ada", 1, 4096)],
    [("bob", 2, 16384), ("carl", 1, 5000)],
    [("ada", 2, 4095)],
    [("ada", 2, 16385)],
    [("ada", 0, 4096)],
    [("ada", 3, 4096)],
    [("", 1, 4096)],
    [("eve", 1, 4096), ("eve", 2, 4096)],
    [("eve", 1, 9), ("eve", 1, 4096), ("dora", 1, 4096)],
    [("eve", 1, None)],
    [("ada", 2, None)],
    [("ada", 9, None)],
    [("", 1, None)],
    [("carl", 1, None), ("carl", 1, 4096)],
    [("carl", 1, None), ("carl", 1, None)],
    [("carl", 1, None)],
]
"""Names, mechanisms and iterations; without iterations the entry is a deletion."""


@pytest.fixture(scope="module")
def admins(
    kafka_release: KafkaRelease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Admin]]:
    """Clients of a Headrace and of a Kafka without authentication."""
    flavours: list[Flavour] = [Headrace(), Kafka()]
    nodes = [Node(one, tmp_path_factory.mktemp(one.name), {}) for one in flavours]
    try:
        for node in nodes:
            node.start()
        with ExitStack() as stack:
            yield [stack.enter_context(Admin(node.address, timeout_s=20)) for node in nodes]
    finally:
        for node in nodes:
            if node.is_running:
                node.kill()


def answers(admins: list[Admin], request: Message) -> list[Any]:
    return [one.cluster.ask(request, response_type_of(type(request))) for one in admins]


def test_changes_and_searches_of_quotas(admins: list[Admin]) -> None:
    """QUO-1"""
    for entity, values in ALTERED:
        entry = alter_client_quotas.AlterClientQuotasRequestEntryData(
            [
                alter_client_quotas.AlterClientQuotasRequestEntityData(*one)
                for one in entity.items()
            ],
            [alter_client_quotas.OpData(key, value or 0.0, value is None) for key, value in values],
        )
        request = alter_client_quotas.AlterClientQuotasRequest([entry])
        ours, theirs = (one.entries[0].error_code for one in answers(admins, request))
        assert ours == theirs, (entity, values)
    for strict in (False, True):
        for conditions in FILTERS:
            components = [describe_client_quotas.ComponentData(*one) for one in conditions]
            filtered = describe_client_quotas.DescribeClientQuotasRequest(components, strict)
            found = [_quotas(one) for one in answers(admins, filtered)]
            assert found[0] == found[1], (conditions, strict)


def _quotas(answer: describe_client_quotas.DescribeClientQuotasResponse) -> object:
    if answer.entries is None:
        return answer.error_code
    return {
        frozenset((part.entity_type, part.entity_name) for part in one.entity): {
            value.key: value.value for value in one.values
        }
        for one in answer.entries
    }


def test_changes_and_descriptions_of_users(admins: list[Admin]) -> None:
    """SEC-5"""
    for entries in CREDENTIALS:
        request = alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            [
                alter_user_scram_credentials.ScramCredentialDeletion(name, mechanism)
                for name, mechanism, iterations in entries
                if iterations is None
            ],
            [
                alter_user_scram_credentials.ScramCredentialUpsertion(
                    name, mechanism, iterations, b"salt", b"salted"
                )
                for name, mechanism, iterations in entries
                if iterations is not None
            ],
        )
        ours, theirs = (
            {one.user: one.error_code for one in answer.results}
            for answer in answers(admins, request)
        )
        assert ours == theirs, entries
    for names in ("", "ada", "ada none", "bob bob ada"):
        users = [describe_user_scram_credentials.UserName(name) for name in names.split()]
        described = describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users)
        ours, theirs = map(_users, answers(admins, described))
        assert ours == theirs, names


def _users(
    answer: describe_user_scram_credentials.DescribeUserScramCredentialsResponse,
) -> dict[str, object]:
    return {
        one.user: (
            one.error_code,
            sorted((info.mechanism, info.iterations) for info in one.credential_infos),
        )
        for one in answer.results
    }


@pytest.mark.parametrize(
    "request_",
    [
        create_delegation_token.CreateDelegationTokenRequest(),
        renew_delegation_token.RenewDelegationTokenRequest(b"x"),
        expire_delegation_token.ExpireDelegationTokenRequest(b"x"),
        describe_delegation_token.DescribeDelegationTokenRequest(None),
    ],
    ids=lambda one: type(one).__name__,
)
def test_requests_about_tokens_without_a_login(admins: list[Admin], request_: Message) -> None:
    """SEC-8"""
    ours, theirs = (one.error_code for one in answers(admins, request_))
    assert ours == theirs != 0
