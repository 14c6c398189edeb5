"""What to do about an error: the layers below tell facts, this one knows the command line."""

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

_WHERE = "by --command-config or --property"

# The first class that fits gives the advice, so narrower ones come first.
_ADVICE: tuple[tuple[type[HeadraceError], str], ...] = (
    (
        HungUp,
        "a listener that asks for a login hangs up so: give security.protocol and sasl.mechanism"
        f" {_WHERE}",
    ),
    (NotKafka, "look for the broker's port, and name it with --bootstrap"),
    (NoAnswer, "it may be overloaded, or no Kafka broker's port; see --timeout and --bootstrap"),
    (TlsFailed, f"check the port, security.protocol and ssl.ca.location {_WHERE}"),
    (
        BrokerUnreachable,
        "start a node with `headrace up`, or name your brokers with --bootstrap or"
        " HEADRACE_BOOTSTRAP",
    ),
    (SaslAuthenticationFailed, f"check sasl.username and sasl.password {_WHERE}"),
    (UnsupportedSaslMechanism, f"choose one of them {_WHERE}"),
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
        "the group is of another type than the command is for; see it with: headrace groups list",
    ),
    (InvalidProperty, f"it is given {_WHERE}"),
)


def with_advice(error: HeadraceError) -> str:
    """The error's own words, and what a user of the command line can do about it."""
    text = str(error) or type(error).__name__
    for kind, advice in _ADVICE:
        if isinstance(error, kind):
            return f"{text.removesuffix('.')}; {advice}"
    return text
