"""Errors report facts; the command line adds advice."""

import pytest

from headrace.cli.advice import with_advice
from headrace.client.addresses import BrokerUnreachable
from headrace.client.cluster import NoSuchTopic
from headrace.client.connection import ConnectionLost, HungUp, NotKafka
from headrace.client.usage import UsageUnavailable
from headrace.errors import (
    HeadraceError,
    InconsistentGroupProtocol,
    NonEmptyGroup,
    SaslAuthenticationFailed,
    SecurityDisabled,
    TopicAuthorizationFailed,
    TransactionalIdNotFound,
)


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (BrokerUnreachable("cannot reach a:1"), "cannot reach a:1; start a node with"),
        (ConnectionLost("a:1 did not answer"), "a:1 did not answer; start a node with"),
        (HungUp("a:1 closed"), "a:1 closed; a listener that requires TLS or a login"),
        (NotKafka("it speaks HTTP"), "it speaks HTTP; look for the broker's port"),
        (SaslAuthenticationFailed("no"), "no; check sasl.username and sasl.password"),
        (
            NoSuchTopic("ordres", ["orders", "x"]),
            "topic 'ordres' does not exist; near it: orders; ",
        ),
        (NonEmptyGroup("'jobs': NON_EMPTY_GROUP"), "'jobs': NON_EMPTY_GROUP; stop its members"),
        (TransactionalIdNotFound("no"), "no; list the transactions with: headrace"),
        (InconsistentGroupProtocol("no"), "no; the command does not apply to"),
        (TopicAuthorizationFailed("no"), "no; the user lacks a right"),
        (SecurityDisabled("No Authorizer."), "No Authorizer; set authorizer.class.name"),
        (
            UsageUnavailable("no usage from a:1"),
            "no usage from a:1; start each node with `--metrics",
        ),
        (HeadraceError("plain"), "plain"),
        (HeadraceError(), "HeadraceError"),
    ],
)
def test_the_narrowest_advice_follows_the_fact(error: HeadraceError, reported: str) -> None:
    assert with_advice(error).startswith(reported)
