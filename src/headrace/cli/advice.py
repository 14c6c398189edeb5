"""What to do about an error: the layers below tell facts, this one knows the command line."""

from headrace.cli.defaults import BOOTSTRAP_VARIABLE
from headrace.client.addresses import BrokerUnreachable
from headrace.client.cluster import NoSuchTopic
from headrace.client.connection import HungUp, NoAnswer, NotKafka
from headrace.client.properties import InvalidProperty
from headrace.client.security import TlsFailed
from headrace.errors import (
    GroupIdNotFound,
    HeadraceError,
    IllegalSaslState,
    InconsistentGroupProtocol,
    NonEmptyGroup,
    OffsetOutOfRange,
    SaslAuthenticationFailed,
    TransactionalIdNotFound,
    UnsupportedSaslMechanism,
)

_Advice = tuple[tuple[type[HeadraceError], str], ...]


def _advice(where: str, brokers: str) -> _Advice:
    """What to do, given where client settings are said, and where brokers are named.

    The first class that fits gives the advice, so narrower ones come first.
    """
    return (
        (
            HungUp,
            "a listener that asks for a login hangs up so: give security.protocol and"
            f" sasl.mechanism {where}",
        ),
        (NotKafka, "look for the broker's port, and name it with --bootstrap"),
        (
            NoAnswer,
            "it may be overloaded, or no Kafka broker's port; see --timeout and --bootstrap",
        ),
        (TlsFailed, f"check the port, security.protocol and ssl.ca.location {where}"),
        (
            BrokerUnreachable,
            f"start a node with `headrace up`, or name your brokers {brokers}",
        ),
        (SaslAuthenticationFailed, f"check sasl.username and sasl.password {where}"),
        (UnsupportedSaslMechanism, f"choose one of them {where}"),
        (IllegalSaslState, "use the port of a SASL listener, or another security.protocol"),
        (NoSuchTopic, "see what there is with: headrace topics list"),
        (OffsetOutOfRange, "see what there is with: headrace offsets TOPIC"),
        (GroupIdNotFound, "see what there is with: headrace groups list"),
        (
            NonEmptyGroup,
            "stop its members first; see them with: headrace groups describe GROUP --members",
        ),
        (
            TransactionalIdNotFound,
            "see what there is with: headrace transactions list",
        ),
        (
            InconsistentGroupProtocol,
            "the group is of another type than the command is for; see it with:"
            " headrace groups list",
        ),
        (InvalidProperty, f"it is given {where}"),
    )


_OF_COMMANDS = _advice(
    "by --command-config or --property", f"with --bootstrap or {BOOTSTRAP_VARIABLE}"
)
_OF_PIPELINES = _advice(
    "in [client] of pipeline.toml or by --property",
    "in `bootstrap` of pipeline.toml or with --bootstrap",
)


def with_advice(error: HeadraceError, command: str = "") -> str:
    """The error's own words, and what a user of the command line can do about it."""
    text = str(error) or type(error).__name__
    for kind, advice in _OF_PIPELINES if command == "pipelines" else _OF_COMMANDS:
        if isinstance(error, kind):
            return f"{text.removesuffix('.')}; {advice}"
    return text
