"""Advice for errors, in terms of the command line: the layers below report facts only."""

from headrace.cli.defaults import BOOTSTRAP_VARIABLE
from headrace.client.addresses import BrokerUnreachable
from headrace.client.cluster import NoSuchTopic
from headrace.client.connection import HungUp, NoAnswer, NotKafka
from headrace.client.properties import InvalidProperty
from headrace.client.security import TlsFailed
from headrace.client.usage import UsageUnavailable
from headrace.errors import (
    ClusterAuthorizationFailed,
    DelegationTokenAuthorizationFailed,
    GroupAuthorizationFailed,
    GroupIdNotFound,
    HeadraceError,
    IllegalSaslState,
    InconsistentGroupProtocol,
    NonEmptyGroup,
    OffsetOutOfRange,
    SaslAuthenticationFailed,
    SecurityDisabled,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    TransactionalIdNotFound,
    UnsupportedSaslMechanism,
)

_NO_RIGHT = (
    ClusterAuthorizationFailed,
    DelegationTokenAuthorizationFailed,
    GroupAuthorizationFailed,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
LIST_TOPICS = "list the topics with: headrace topics list"

_Advice = tuple[tuple[type[HeadraceError], str], ...]


def _advice(where: str, brokers: str) -> _Advice:
    """Advice by error class, given how client settings and brokers are named on this command line.

    The first class that fits gives the advice, so narrower ones come first.
    """
    return (
        (
            HungUp,
            "a listener that requires TLS or a login closes connections like this: set"
            f" security.protocol and sasl.mechanism {where}",
        ),
        (NotKafka, "look for the broker's port, and name it with --bootstrap"),
        (
            NoAnswer,
            "the broker is busy, or this is not a broker's port; see --timeout and --bootstrap",
        ),
        (TlsFailed, f"check the port, security.protocol and ssl.ca.location {where}"),
        (
            BrokerUnreachable,
            f"start a node with `headrace up`, or name your brokers {brokers}",
        ),
        (SaslAuthenticationFailed, f"check sasl.username and sasl.password {where}"),
        (UnsupportedSaslMechanism, f"choose one of them {where}"),
        (IllegalSaslState, "use the port of a SASL listener, or another security.protocol"),
        *(
            (one, "the user lacks a right; an administrator sees why with: headrace acls explain")
            for one in _NO_RIGHT
        ),
        (SecurityDisabled, "set authorizer.class.name and super.users on the brokers"),
        (NoSuchTopic, LIST_TOPICS),
        (OffsetOutOfRange, "list the offsets with: headrace offsets TOPIC"),
        (GroupIdNotFound, "list the groups with: headrace groups list"),
        (
            NonEmptyGroup,
            "stop its members first; list them with: headrace groups describe GROUP --members",
        ),
        (
            TransactionalIdNotFound,
            "list the transactions with: headrace transactions list",
        ),
        (
            InconsistentGroupProtocol,
            "the command does not apply to this type of group; list the types with:"
            " headrace groups list",
        ),
        (InvalidProperty, f"it is given {where}"),
        (
            UsageUnavailable,
            "start each node with `--metrics PORT`, and name these ports with --metrics",
        ),
    )


_OF_COMMANDS = _advice(
    "by --command-config or --property", f"with --bootstrap or {BOOTSTRAP_VARIABLE}"
)
_OF_PIPELINES = _advice(
    "in [client] of pipeline.toml or by --property",
    "in `bootstrap` of pipeline.toml or with --bootstrap",
)


def with_advice(error: HeadraceError, command: str = "") -> str:
    """Return the error's message with advice for a user of the command line."""
    text = str(error) or type(error).__name__
    for kind, advice in _OF_PIPELINES if command == "pipelines" else _OF_COMMANDS:
        if isinstance(error, kind):
            return f"{text.removesuffix('.')}; {advice}"
    return text
