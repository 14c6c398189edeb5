"""The sink's options: Kafka's own behind `kafka.`, and a few of ours."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.spark.option_names import (
    CLIENT_PREFIX,
    PASSED_OVER,
    Side,
    given_properties,
    is_for_java,
    option_complaint,
    property_complaint,
)
from headrace.spark.sink.errors import WrongOption

TOKEN_TOPIC = "__headrace_sink_tokens"
TRANSACTION_TIMEOUT_MS = 900_000
"""The most that brokers allow unless told otherwise: a transaction lasts as long as its batch."""

REGISTRY_URL = "schema.registry.url"
REGISTRY_LOGIN = "schema.registry.basic.auth.user.info"
REGISTRY_SUBJECT = "schema.registry.subject"

_BY_SCHEMA = ("json", "avro", "protobuf")
SINK_OPTIONS = (
    *("topic", "guarantee", "token.writer", "token.batch", "token.topic", "singleTransaction"),
    *("value.format", "value.columns", "schema"),
    *(REGISTRY_URL, REGISTRY_LOGIN, REGISTRY_SUBJECT),
)
"""What a write may be told, besides client properties."""


class Guarantee(enum.Enum):
    """What becomes of a batch that is written again after a failure."""

    EXACTLY_ONCE = "exactly-once"
    IDEMPOTENT = "idempotent"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """A registry by whose schema values are written: the one given, or the subject's newest."""

    url: str = field(repr=False)
    """It may have a login before the host."""
    format: str
    login: str = field(default="", repr=False)
    schema: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """What the user asked for, checked."""

    properties: Mapping[str, str] = field(repr=False)
    """Client properties; they may hold a password, so they are not shown."""
    topic: str | None = None
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    writer: str | None = None
    batch: int | None = None
    token_topic: str = TOKEN_TOPIC
    is_single_transaction: bool = False
    is_json: bool = False
    value_columns: tuple[str, ...] = ()
    """Which columns a value has; none means all that have no other part in the record."""
    registry: RegistryOptions | None = None

    @property
    def is_value_of_columns(self) -> bool:
        """Whether the value is made of columns, and is not itself one."""
        return self.is_json or self.registry is not None

    @property
    def is_transactional(self) -> bool:
        return self.guarantee is Guarantee.EXACTLY_ONCE

    @property
    def transaction_timeout_ms(self) -> int:
        return int(self.properties.get("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS))


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Check options whose names may come in any case, as Spark's do."""
    options = {name.lower(): value for name, value in given.items()}
    for name in options.keys() - PASSED_OVER:
        if not name.startswith(CLIENT_PREFIX) and (wrong := option_complaint(name, SINK_OPTIONS)):
            raise WrongOption(wrong)
    checked = SinkOptions(
        properties=_client_properties(options),
        topic=options.get("topic"),
        guarantee=_guarantee(options.get("guarantee", Guarantee.EXACTLY_ONCE.value)),
        writer=options.get("token.writer"),
        batch=_batch(options.get("token.batch")),
        token_topic=options.get("token.topic", TOKEN_TOPIC),
        is_single_transaction=_flag(options, "singleTransaction"),
        is_json=_format(options) == "json" and not options.get(REGISTRY_URL),
        value_columns=_names(options.get("value.columns", "")),
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


def _batch(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdigit():
        raise WrongOption(f"token.batch must be a number from 0 on, not {text!r}")
    return int(text)


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name.lower(), "false").lower()
    if text not in ("true", "false"):
        raise WrongOption(f"{name} must be true or false, not {text!r}")
    return text == "true"


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


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
