"""The TLS of a node: contexts of its listeners and for its connections to other nodes.

Contexts follow the files and the dynamic configs while the node runs. Files that cannot be used
change nothing: the old contexts stay, and the reason is logged once.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

import msgspec

from headrace.errors import HeadraceError
from headrace.security.tls import ListenerTls
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_loading import with_dynamic
from headrace.settings.listener_security import (
    RELOADABLE,
    TlsSettings,
    check_tls,
    listener_security,
)

_log = logging.getLogger(__name__)

_RELOADED = tuple(config.removeprefix("ssl.").replace(".", "_") for config in sorted(RELOADABLE))
_Stamp = tuple[int, int, int] | None


class NodeTls:
    """The TLS listeners of one node."""

    def __init__(self, settings: BrokerSettings) -> None:
        """Read all files; raise `InvalidTls` if a listener cannot be used."""
        self._listeners: dict[str, ListenerTls] = {}
        self._stamps: dict[str, dict[str, _Stamp]] = {}
        self._changing: dict[str, dict[str, _Stamp]] = {}
        """The stamps of files that have changed, at the last look at them."""
        self._complaints: dict[str, str] = {}
        self.reload_failures = 0
        between = _between_nodes(settings)
        own = [one.name for one in (*settings.broker_listeners, *settings.controller_listeners)]
        for name in dict.fromkeys((*own, *between)):
            security = listener_security(settings, name)
            if security.tls is not None:
                self._stamps[name] = _stamps(security.tls)
                self._listeners[name] = ListenerTls(
                    name,
                    security.tls,
                    is_between_nodes=name in between,
                    names_principals=not security.protocol.has_sasl,
                )

    @property
    def is_used(self) -> bool:
        """Return whether any listener has TLS."""
        return bool(self._listeners)

    @property
    def any(self) -> ListenerTls | None:
        """Return the contexts of any listener; those between nodes are preferred."""
        return next(reversed(self._listeners.values()), None)

    def of(self, listener: str) -> ListenerTls | None:
        """Return the contexts of a listener; None if it has no TLS."""
        return self._listeners.get(listener)

    def check(self, settings: BrokerSettings, changes: Mapping[str, str]) -> None:
        """Raise `InvalidTls` or `InvalidConfig` unless dynamic configs can be applied."""
        changed = with_dynamic(settings, {}, changes)
        for name, listener in self._listeners.items():
            wanted = _wanted(listener.settings, changed, name)
            if wanted != listener.settings:
                check_tls(wanted, name)
                listener.check(wanted)

    def follow(self, settings: BrokerSettings) -> None:
        """Apply dynamic configs, and files that have changed.

        Files must be the same at two looks, because a program may still be writing them.
        """
        for name, listener in self._listeners.items():
            wanted = _wanted(listener.settings, settings, name)
            stamps = _stamps(wanted)
            if wanted == listener.settings:
                if stamps == self._stamps[name]:
                    continue
                if stamps != self._changing.get(name):
                    self._changing[name] = stamps
                    continue
            self._changing.pop(name, None)
            self._stamps[name] = stamps
            self._replace(listener, wanted)

    def _replace(self, listener: ListenerTls, wanted: TlsSettings) -> None:
        name = listener.listener
        try:
            is_new = listener.replace(wanted)
        except HeadraceError as error:
            if self._complaints.get(name) != str(error):
                self._complaints[name] = str(error)
                self.reload_failures += 1
                fields = {"listener": name, "error": str(error)}
                _log.error("new certificates rejected, the old ones stay", extra=fields)
            return
        self._complaints.pop(name, None)
        if is_new:
            certificate = listener.certificate
            subject = None if certificate is None else certificate.subject
            _log.info("certificates reloaded", extra={"listener": name, "subject": subject})


def _between_nodes(settings: BrokerSettings) -> tuple[str, ...]:
    """Return the names of the listeners through which nodes reach each other."""
    if settings.is_single_node:
        return ()
    brokers = (settings.inter_broker_listener,) if settings.is_broker else ()
    return (*brokers, *settings.controller_listener_names)


def _wanted(present: TlsSettings, settings: BrokerSettings, name: str) -> TlsSettings:
    """Return the settings of an open listener with the properties that may change now."""
    wanted = listener_security(settings, name).tls
    if wanted is None:
        return present
    changes = {field: getattr(wanted, field) for field in _RELOADED}
    return msgspec.structs.replace(present, **changes)


def _stamps(tls: TlsSettings) -> dict[str, _Stamp]:
    return {path: _stamp(path) for path in tls.files}


def _stamp(path: str) -> _Stamp:
    """Return a value that changes with a file."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
