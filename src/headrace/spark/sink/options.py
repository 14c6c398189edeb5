"""The sink's options: Kafka's own behind `kafka.`, and a few of ours."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.spark.sink.errors import WrongOption

TOKEN_TOPIC = "__headrace_sink_tokens"
TRANSACTION_TIMEOUT_MS = 900_000
"""The most that brokers allow unless told otherwise: a transaction lasts as long as its batch."""

_KAFKA = "kafka."
_OURS_ALONE = {
    "transactional.id": "the sink names its transactions by token.writer and the task",
    "enable.idempotence": "set the option guarantee",
    "delivery.report.only.error": "the sink needs to hear of its token",
}


class Guarantee(enum.Enum):
    """What becomes of a batch that is written again after a failure."""

    EXACTLY_ONCE = "exactly-once"
    IDEMPOTENT = "idempotent"
    AT_LEAST_ONCE = "at-least-once"


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
    """Which columns a JSON value has; none means all that have no other part in the record."""

    @property
    def is_transactional(self) -> bool:
        return self.guarantee is Guarantee.EXACTLY_ONCE

    @property
    def transaction_timeout_ms(self) -> int:
        return int(self.properties.get("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS))


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Check options whose names may come in any case, as Spark's do."""
    options = {name.lower(): value for name, value in given.items()}
    checked = SinkOptions(
        properties=_client_properties(options),
        topic=options.get("topic"),
        guarantee=_guarantee(options.get("guarantee", Guarantee.EXACTLY_ONCE.value)),
        writer=options.get("token.writer"),
        batch=_batch(options.get("token.batch")),
        token_topic=options.get("token.topic", TOKEN_TOPIC),
        is_single_transaction=_flag(options, "singleTransaction"),
        is_json=_is_json(options.get("value.format", "bytes")),
        value_columns=_names(options.get("value.columns", "")),
    )
    if checked.is_single_transaction and not checked.is_transactional:
        raise WrongOption("singleTransaction=true needs guarantee=exactly-once")
    if checked.value_columns and not checked.is_json:
        raise WrongOption("value.columns needs value.format=json")
    return checked


def _client_properties(options: Mapping[str, str]) -> dict[str, str]:
    properties = {
        name.removeprefix(_KAFKA): value
        for name, value in options.items()
        if name.startswith(_KAFKA)
    }
    if not properties.get("bootstrap.servers"):
        raise WrongOption("the option kafka.bootstrap.servers is missing")
    for name, instead in _OURS_ALONE.items():
        if name in properties:
            raise WrongOption(f"kafka.{name} cannot be set: {instead}")
    timeout = properties.get("transaction.timeout.ms", "1")
    if not timeout.isdigit() or int(timeout) < 1:
        raise WrongOption(f"kafka.transaction.timeout.ms must be a number above 0, not {timeout!r}")
    return properties


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


def _is_json(text: str) -> bool:
    if text not in ("bytes", "json"):
        raise WrongOption(f"value.format must be bytes or json, not {text!r}")
    return text == "json"


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
