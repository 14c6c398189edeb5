"""Reads `server.properties` into broker settings, and applies dynamic configs to them.

A name that Kafka lacks is an error with the nearest name. A name that only Kafka has is a warning.
So a file for Kafka works unchanged, and every typo is noticed.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from headrace.errors import InvalidConfig
from headrace.settings.broker import (
    BROKER_CONFIGS,
    DYNAMIC_BROKER_CONFIGS,
    BrokerSettings,
    field_name,
)
from headrace.settings.config_providers import Resolved, is_of_providers, resolve
from headrace.settings.definitions import nearest
from headrace.settings.listener_security import OF_EVERY_BROKER, base_name, is_listener_override
from headrace.settings.node_rules import check_node, questionable

_CLEANER_BUFFER_MIN = 1 << 20


def load(
    properties: Mapping[str, str],
    places: Mapping[str, str] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> tuple[BrokerSettings, list[str]]:
    """Settings and warnings from a properties file; one error lists all mistakes.

    `places` maps properties to their place, such as `server.properties line 7`.
    """
    at = places or {}
    resolved = resolve(properties, environment)
    if resolved.mistakes:
        rows = (_placed(text, [name], at) for name, text in resolved.mistakes.items())
        raise InvalidConfig("\n".join(rows))
    found = _parsed(resolved, at)
    found.values.setdefault("node_id", found.values.get("broker_id", 1))
    settings = BrokerSettings(
        **found.values,
        listener_overrides=found.overrides,
        given=found.given,
        ignored=_without_secrets(found.others),
    )
    try:
        check(settings)
    except InvalidConfig as mistake:
        # These rules relate several properties and name them.
        named = [name for name in at if re.search(rf"\b{re.escape(name)}\b", str(mistake))]
        raise InvalidConfig(_placed(str(mistake), named, at)) from mistake
    return settings, [*found.warnings, *questionable(settings)]


class _Parsed(msgspec.Struct):
    """The values of a file: those of fields by name, those of single listeners, and the rest."""

    values: dict[str, Any] = {}
    overrides: dict[str, str] = {}
    given: dict[str, str] = {}
    others: dict[str, str] = {}
    warnings: list[str] = []


def _parsed(resolved: Resolved, at: Mapping[str, str]) -> _Parsed:
    """Parse each property; one error lists all mistakes."""
    found = _Parsed()
    mistakes: list[str] = []
    for name, text in resolved.properties.items():
        is_override = is_listener_override(name)
        is_known = is_override or name in BROKER_CONFIGS
        (found.given if is_known else found.others)[name] = text
        try:
            if is_override:
                _check_override(name, text)
                found.overrides[_with_lower_listener(name)] = text
            elif is_known:
                found.values[field_name(name)] = BROKER_CONFIGS[name].parse(text)
            elif not is_of_providers(name):
                found.warnings.append(_placed(_explain(name, text), [name], at))
        except InvalidConfig as mistake:
            reference = resolved.references.get(name)
            # The text of the mistake shows the value, which may be a secret in a wrong place.
            shown = f"{name} has an invalid value in {reference}" if reference else str(mistake)
            mistakes.append(_placed(shown, [name], at))
    if mistakes:
        raise InvalidConfig("\n".join(mistakes))
    return found


def _placed(text: str, names: Iterable[str], places: Mapping[str, str]) -> str:
    found = [places[name] for name in names if name in places]
    return f"{', '.join(found)}: {text}" if found else text


def check(settings: BrokerSettings) -> None:
    """Check the rules that join several properties."""
    check_node(settings)
    _check_directories(settings)
    check_logs(settings)
    check_groups(settings)


def with_dynamic(
    settings: BrokerSettings,
    cluster_default: Mapping[str, str],
    broker: Mapping[str, str],
) -> BrokerSettings:
    """The settings with the dynamic configs applied.

    Both layers were validated when they were stored. Values that this version cannot apply are
    left out, so that a directory of another version still starts.
    """
    values: dict[str, Any] = {}
    overrides: dict[str, str] = {}
    for name, text in {**cluster_default, **broker}.items():
        try:
            if name in DYNAMIC_BROKER_CONFIGS:
                values[field_name(name)] = BROKER_CONFIGS[name].parse(text)
            elif is_listener_override(name) and (
                name in broker or base_name(name) in OF_EVERY_BROKER
            ):
                _check_override(name, text)
                overrides[_with_lower_listener(name)] = text
        except InvalidConfig:
            continue
    if overrides:
        values["listener_overrides"] = {**settings.listener_overrides, **overrides}
    return msgspec.structs.replace(settings, **values)


def _check_override(name: str, text: str) -> None:
    """Raise unless the value of a listener's property has the type and limits of the property."""
    definition = BROKER_CONFIGS[base_name(name)]
    msgspec.structs.replace(definition, name=name).parse(text)


def _with_lower_listener(name: str) -> str:
    """Return a property of a listener with the listener's name in lower case, as in Kafka."""
    prefix, listener, rest = name.split(".", 3)[:2], name.split(".", 3)[2], name.split(".", 3)[3]
    return ".".join((*prefix, listener.lower(), rest))


def _explain(name: str, text: str) -> str:
    """A warning for a property that Headrace ignores; raises if Kafka has no such property."""
    from headrace.settings import kafka_properties  # Large, and seldom needed.

    reason = kafka_properties.reason_unsupported(name)
    if reason is None:
        hint = nearest(name, [*BROKER_CONFIGS, *kafka_properties.names()])
        raise InvalidConfig(f"{name} is not a broker property{hint}")
    definition = kafka_properties.definitions().get(name)
    if definition is not None:
        definition.read(text)  # An invalid value is an error even if the property has no effect.
    return f"{name} is ignored: {reason}"


def _without_secrets(properties: Mapping[str, str]) -> dict[str, str | None]:
    if not properties:
        return {}
    from headrace.settings.kafka_properties import is_sensitive

    return {name: None if is_sensitive(name) else text for name, text in properties.items()}


def _check_directories(settings: BrokerSettings) -> None:
    """Reject URLs of object stores, which would become local folders of that name."""
    given = {
        "log.dirs" if settings.log_dirs is not None else "log.dir": settings.directories,
        "metadata.log.dir": (settings.metadata_directory,),
    }
    for name, paths in given.items():
        for path in paths:
            if "://" in path:
                raise InvalidConfig(
                    f"{name}: {path} is not a directory; mount other storage, and give its path"
                )


def check_groups(settings: BrokerSettings) -> None:
    """Check that the defaults of groups are within the limits of groups."""
    for kind in ("consumer", "share", "streams"):
        for interval in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"):
            name, low, high = (f"group.{kind}.{limit}{interval}" for limit in ("", "min.", "max."))
            value, least, most = (getattr(settings, field_name(one)) for one in (name, low, high))
            if not least <= value <= most:
                raise InvalidConfig(
                    f"{name} ({value}) must be between {low} ({least}) and {high} ({most})"
                )
    members, sessions = settings.group_share_max_size, settings.group_share_max_share_sessions
    if sessions < members:
        raise InvalidConfig(
            f"group.share.max.share.sessions ({sessions}) must be at least group.share.max.size "
            f"({members}), so that every member of a group can have a session"
        )


def check_logs(settings: BrokerSettings) -> None:
    if settings.retention_ms == 0:
        raise InvalidConfig("log.retention.ms must be -1 (unlimited) or at least 1")
    shortest = settings.log_cleaner_min_compaction_lag_ms
    longest = settings.log_cleaner_max_compaction_lag_ms
    if shortest > longest:
        raise InvalidConfig(
            f"log.cleaner.min.compaction.lag.ms ({shortest}) must not exceed "
            f"log.cleaner.max.compaction.lag.ms ({longest})"
        )
    if settings.log_cleaner_threads < 1:
        raise InvalidConfig("log.cleaner.threads must be at least 1")
    least_bytes = _CLEANER_BUFFER_MIN * settings.log_cleaner_threads
    if settings.log_cleaner_dedupe_buffer_size <= least_bytes:
        raise InvalidConfig(
            f"log.cleaner.dedupe.buffer.size must be more than {least_bytes}, which is 1 MB for "
            f"each of log.cleaner.threads, not {settings.log_cleaner_dedupe_buffer_size}"
        )
