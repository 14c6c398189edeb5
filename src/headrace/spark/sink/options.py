"""The sink's options, and client properties with the prefix `kafka.`."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.spark.option_names import (
    CLIENT_PREFIX,
    PASSED_OVER,
    REGISTRY_LOGIN,
    REGISTRY_OPTIONS,
    REGISTRY_SUBJECT,
    REGISTRY_URL,
    Side,
    given_properties,
    is_for_java,
    option_complaint,
    property_complaint,
)
from headrace.spark.option_values import OptionValues
from headrace.spark.sink.errors import WrongOption

TOKEN_TOPIC = "__headrace_sink_tokens"
TRANSACTION_TIMEOUT_MS = 900_000
"""The brokers' default maximum, because a transaction lasts as long as its batch."""

_BY_SCHEMA = ("json", "avro", "protobuf")
SINK_OPTIONS = (
    *("topic", "guarantee", "token.writer", "token.batch", "token.topic", "singleTransaction"),
    *("value.format", "value.columns", "schema"),
    *REGISTRY_OPTIONS,
)
"""The options of a write apart from client properties."""


class Guarantee(enum.Enum):
    """The guarantee for a batch that is repeated after a failure."""

    EXACTLY_ONCE = "exactly-once"
    IDEMPOTENT = "idempotent"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """A registry for values, with a schema or a subject whose newest schema is used."""

    url: str = field(repr=False)
    """It may contain a login."""
    format: str
    login: str = field(default="", repr=False)
    schema: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The checked options."""

    properties: Mapping[str, str] = field(repr=False)
    """Client properties, which may contain a password."""
    topic: str | None = None
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    writer: str | None = None
    batch: int | None = None
    token_topic: str = TOKEN_TOPIC
    is_single_transaction: bool = False
    is_json: bool = False
    value_columns: tuple[str, ...] = ()
    """The columns in the value; empty for all without another part in the record."""
    registry: RegistryOptions | None = None

    @property
    def is_value_of_columns(self) -> bool:
        """Return whether the value is built from columns rather than being one."""
        return self.is_json or self.registry is not None

    @property
    def is_transactional(self) -> bool:
        return self.guarantee is Guarantee.EXACTLY_ONCE

    @property
    def transaction_timeout_ms(self) -> int:
        return int(self.properties.get("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS))


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Parse and check options, whose names are case-insensitive."""
    options = {name.lower(): value for name, value in given.items()}
    for name in options.keys() - PASSED_OVER:
        if not name.startswith(CLIENT_PREFIX) and (wrong := option_complaint(name, SINK_OPTIONS)):
            raise WrongOption(wrong)
    values = OptionValues(options, WrongOption)
    checked = SinkOptions(
        properties=_client_properties(options),
        topic=options.get("topic"),
        guarantee=_guarantee(options.get("guarantee", Guarantee.EXACTLY_ONCE.value)),
        writer=options.get("token.writer"),
        batch=values.number("token.batch", 0),
        token_topic=options.get("token.topic", TOKEN_TOPIC),
        is_single_transaction=values.flag("singleTransaction"),
        is_json=_format(options) == "json" and not options.get(REGISTRY_URL),
        value_columns=values.words("value.columns"),
        registry=_registry(options),
    )
    if checked.is_single_transaction and not checked.is_transactional:
        raise WrongOption("singleTransaction=true needs guarantee=exactly-once")
    if checked.value_columns and not checked.is_value_of_columns:
        raise WrongOption("value.columns needs value.format=json, avro or protobuf")
    return checked


def _client_properties(options: Mapping[str, str]) -> dict[str, str]:
    properties = given_properties(options)
    if not properties.get("bootstrap.servers"):
        raise WrongOption("the option kafka.bootstrap.servers is missing")
    for name in properties:
        if wrong := property_complaint(name, Side.SINK):
            raise WrongOption(wrong)
    timeout = properties.get("transaction.timeout.ms", "1")
    if not timeout.isdigit() or int(timeout) < 1:
        raise WrongOption(f"kafka.transaction.timeout.ms must be a number above 0, not {timeout!r}")
    return {name: value for name, value in properties.items() if not is_for_java(name)}


def _guarantee(text: str) -> Guarantee:
    try:
        return Guarantee(text)
    except ValueError:
        names = ", ".join(one.value for one in Guarantee)
        raise WrongOption(f"guarantee must be one of {names}, not {text!r}") from None


def _format(options: Mapping[str, str]) -> str:
    text = options.get("value.format", "bytes")
    if text not in ("bytes", *_BY_SCHEMA):
        raise WrongOption(f"value.format must be bytes, {', '.join(_BY_SCHEMA)}, not {text!r}")
    return text


def _registry(options: Mapping[str, str]) -> RegistryOptions | None:
    url, format_ = options.get(REGISTRY_URL, "").strip(), _format(options)
    if not url:
        if format_ in ("avro", "protobuf"):
            raise WrongOption(f"value.format={format_} needs the option {REGISTRY_URL}")
        return None
    if format_ not in _BY_SCHEMA:
        raise WrongOption(f"{REGISTRY_URL} needs value.format={', '.join(_BY_SCHEMA)}")
    if not options.get("topic"):
        raise WrongOption(f"{REGISTRY_URL} needs the option topic: its subject has the schema")
    return RegistryOptions(
        url,
        format_,
        options.get(REGISTRY_LOGIN, ""),
        options.get("schema", ""),
        options.get(REGISTRY_SUBJECT, "").strip(),
    )
