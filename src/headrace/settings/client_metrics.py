"""The configs of a client metrics subscription (KIP-714): clients, metrics and interval."""

from collections.abc import Mapping

from headrace.errors import InvalidConfig, InvalidRequest
from headrace.settings.definitions import ConfigDefinition, ConfigType, Value, between, nearest

_MATCH_KEYS = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def _match_patterns(value: Value) -> str | None:
    """Pairs such as `client_id=app-.*`; each pattern must compile."""
    import re  # Only when a subscription is changed.

    for pair in value if isinstance(value, tuple) else ():
        key, separator, pattern = pair.partition("=")
        if not separator or key.strip() not in _MATCH_KEYS:
            return f"must be pairs of key=pattern with the keys {', '.join(_MATCH_KEYS)}"
        try:
            re.compile(pattern)
        except re.error as error:
            return f"has an invalid regular expression ({error})"
    return None


CLIENT_METRICS_CONFIGS: Mapping[str, ConfigDefinition] = {
    "interval.ms": ConfigDefinition(
        name="interval.ms",
        type=ConfigType.INT,
        default=300_000,
        validator=between(100, 3_600_000),
        documentation="Interval at which clients of this subscription push metrics.",
    ),
    "metrics": ConfigDefinition(
        name="metrics",
        type=ConfigType.LIST,
        default=(),
        documentation="Prefixes of the metrics that clients push; * is all metrics.",
    ),
    "match": ConfigDefinition(
        name="match",
        type=ConfigType.LIST,
        default=(),
        validator=_match_patterns,
        documentation="Clients of this subscription, as key=pattern pairs.",
    ),
}


def validate(configs: Mapping[str, str]) -> None:
    """Raise unless a subscription may have these configs.

    As in Kafka, an unknown name and an interval out of bounds are invalid requests. All other
    mistakes are invalid configs.
    """
    for name, text in configs.items():
        definition = CLIENT_METRICS_CONFIGS.get(name)
        if definition is None:
            hint = nearest(name, CLIENT_METRICS_CONFIGS)
            raise InvalidRequest(f"{name} is not a client metrics config{hint}")
        value = definition.read(text)
        try:
            definition.check(value)
        except InvalidConfig as mistake:
            if name == "interval.ms":
                raise InvalidRequest(str(mistake)) from None
            raise
