"""The rules for broker configs that change while the broker runs.

The rules are Kafka's, also for configs that have no effect here. Values that Kafka rejects are
rejected with Kafka's code, INVALID_REQUEST.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.errors import InvalidConfig, InvalidRequest
from headrace.settings.broker import DYNAMIC_BROKER_CONFIGS, BrokerSettings, field_name
from headrace.settings.broker_layers import BrokerLayers, definition_of, is_known
from headrace.settings.broker_loading import check_groups, check_logs
from headrace.settings.definitions import ConfigDefinition, UpdateMode, Value
from headrace.settings.listener_security import base_name, needing_restart

# Configs per listener that can also be set for all brokers.
_LISTENER_CLUSTER_WIDE = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)

_THREAD_COUNTS = frozenset(
    {
        "background.threads",
        "log.cleaner.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
    }
)

# Kafka opens and closes listeners while it runs. Here they are opened at the start, so a change is
# refused: the broker would announce a listener that is not open.
# So are their logins: a mechanism that seems to be disabled would still let clients in.
_OPENED_AT_START = frozenset(
    {
        "listeners",
        "listener.security.protocol.map",
        "sasl.enabled.mechanisms",
        "sasl.kerberos.principal.to.local.rules",
        "sasl.mechanism.inter.broker.protocol",
    }
)


def validate_dynamic(
    configs: Mapping[str, str], layers: BrokerLayers, *, is_per_broker: bool
) -> None:
    """Raise unless these configs may be set, on one broker or as the default of all of them."""
    settings = layers.settings
    _check_listeners(settings, configs)
    values: dict[str, Any] = {}
    for name, text in configs.items():
        definition = definition_of(name)
        _check_scope(definition, is_per_broker=is_per_broker)
        try:
            value = definition.parse(text)
        except InvalidConfig as mistake:
            raise InvalidRequest(str(mistake)) from None
        _check_change(name, layers.value_of(definition, settings), value)
        if name == "cordoned.log.dirs":
            _check_directories(name, value, settings)
        if name in DYNAMIC_BROKER_CONFIGS:
            values[field_name(name)] = value
    _check_together(msgspec.structs.replace(settings, **values))


def _check_listeners(settings: BrokerSettings, configs: Mapping[str, str]) -> None:
    """Allow an open listener to change its keys and certificates, and nothing else."""
    if names := needing_restart(settings, configs):
        raise InvalidRequest(
            f"{names[0]} cannot be changed while its listener is open; set it in the properties "
            "file and restart"
        )


def _check_scope(definition: ConfigDefinition, *, is_per_broker: bool) -> None:
    name = definition.name
    base = base_name(name)
    is_listeners = base != name and base not in _LISTENER_CLUSTER_WIDE
    match definition.update_mode:
        case _ if is_listeners and not is_per_broker:
            raise InvalidRequest(f"{name} cannot be set for all brokers at once; name the broker")
        case _ if not is_known(name):
            pass  # A plug-in may define the config, so Kafka accepts it.
        case UpdateMode.READ_ONLY:
            raise InvalidRequest(
                f"{name} cannot be changed while the broker runs; set it in the properties file "
                "and restart"
            )
        case UpdateMode.PER_LISTENER:
            raise InvalidRequest(
                f"{name} can only be changed for one listener: set listener.name.LISTENER.{name}"
            )
        case UpdateMode.PER_BROKER if not is_per_broker:
            raise InvalidRequest(f"{name} cannot be set for all brokers at once; name the broker")


def _check_change(name: str, present: Value, wanted: Value) -> None:
    """Rules that compare the value with the one in force."""
    if name in _OPENED_AT_START and wanted != present:
        raise InvalidRequest(
            f"{name} cannot be changed while the broker runs: listeners are opened when it starts; "
            "set it in the properties file and restart"
        )
    if name in _THREAD_COUNTS and isinstance(wanted, int) and isinstance(present, int):
        low, high = max(present // 2, 1), present * 2
        if not low <= wanted <= high:
            raise InvalidRequest(
                f"{name} is {present} and can go to between {low} and {high} in one step, "
                f"not to {wanted}"
            )


def _check_directories(name: str, wanted: Value, settings: BrokerSettings) -> None:
    named = wanted if isinstance(wanted, tuple) and wanted != ("*",) else ()
    unknown = [path for path in named if path not in settings.directories]
    if unknown:
        raise InvalidRequest(f"{name}: {unknown[0]} is not in log.dirs; name one of those, or *")


def _check_together(settings: BrokerSettings) -> None:
    try:
        check_logs(settings)
        check_groups(settings)
    except InvalidConfig as mistake:
        raise InvalidRequest(str(mistake)) from None
