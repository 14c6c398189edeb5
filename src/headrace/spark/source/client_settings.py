"""The client properties for reading, under Kafka's names; the others are for connections."""

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.spark.source.errors import InvalidOption

READ_UNCOMMITTED, READ_COMMITTED = 0, 1

_ISOLATION = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Settings for fetching records."""

    isolation_level: int = READ_UNCOMMITTED
    checks_crcs: bool = True
    fetch_bytes_max: int = 8 << 20
    """The maximum size of a response, for any number of partitions."""
    partition_bytes_max: int = 8 << 20
    receive_buffer_bytes: int = 4 << 20
    request_timeout_s: float = 30.0
    patience_s: float = 60.0
    """The time for retries of requests to unavailable brokers and former leaders."""
    metadata_age_s_max: float = 5.0
    """The time until added partitions are noticed."""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> "ClientSettings":
        """Parse the properties; the defaults suit batches rather than endless consumers."""
        level = properties.get("isolation.level", "read_uncommitted").lower()
        if level not in _ISOLATION:
            raise InvalidOption(
                f"kafka.isolation.level is {level!r}; it must be one of {', '.join(_ISOLATION)}"
            )
        fetch_bytes = _whole(properties, "fetch.max.bytes", 8 << 20)
        return cls(
            isolation_level=_ISOLATION[level],
            checks_crcs=properties.get("check.crcs", "true").lower() != "false",
            fetch_bytes_max=fetch_bytes,
            partition_bytes_max=_whole(properties, "max.partition.fetch.bytes", fetch_bytes),
            receive_buffer_bytes=_whole(properties, "receive.buffer.bytes", 4 << 20),
            request_timeout_s=_whole(properties, "request.timeout.ms", 30_000) / 1000,
            patience_s=_whole(properties, "default.api.timeout.ms", 60_000) / 1000,
            metadata_age_s_max=_whole(properties, "metadata.max.age.ms", 5_000) / 1000,
        )


def _whole(properties: Mapping[str, str], name: str, default: int) -> int:
    text = str(properties.get(name, default)).strip()
    if not text.isdigit() or not int(text):
        raise InvalidOption(f"kafka.{name} is {text!r}; it must be a whole number above 0")
    return int(text)
