"""Envelopes: the client in them, as Headrace and as Kafka write it."""

import pytest

from headrace.protocol.codec import decode
from headrace.protocol.schemas.describe_cluster import DescribeClusterRequest
from headrace.protocol.schemas.records.principals import DefaultPrincipalData
from headrace.quorum.envelopes import caller_in, enclosed, encoded_principal
from headrace.security.principals import Caller, Principal

CALLERS = [
    Caller(Principal("User", "ada"), "10.0.0.7"),
    Caller(Principal("User", "\u00e4,=;", is_token_authenticated=True), "::1"),
    Caller(Principal("User", "eve", groups=("staff", "\u00e4")), "127.0.0.1"),
]


@pytest.mark.parametrize("caller", CALLERS)
def test_the_client_comes_out_of_an_envelope_as_it_went_in(caller: Caller) -> None:
    """SEC-7, SEC-9"""
    envelope = enclosed(DescribeClusterRequest(), 2, "c", caller)
    assert caller_in(envelope) == caller


def test_a_principal_without_groups_has_the_bytes_of_kafka() -> None:
    assert encoded_principal(Principal("User", "ada")) == b"\0\0\x05User\x04ada\0\0"


def test_kafka_reads_a_principal_with_groups_without_them() -> None:
    data = encoded_principal(Principal("User", "ada", groups=("staff",)))
    found = decode(DefaultPrincipalData, 0, memoryview(data)[2:])
    assert (found.type, found.name) == ("User", "ada")
