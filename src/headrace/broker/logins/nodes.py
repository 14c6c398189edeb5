"""The logins of one node by its settings; nodes without SASL import nothing for it."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from headrace.settings.listener_logins import has_sasl, own_login_at_brokers

if TYPE_CHECKING:
    from headrace.broker.logins.listeners import NodeLogins
    from headrace.metadata.image import MetadataImage
    from headrace.peers.own_login import OwnLogin
    from headrace.runtime.clock import Clock
    from headrace.security.sasl.reports import Audit
    from headrace.settings.broker import BrokerSettings
    from headrace.settings.listeners import Listener


def own_login_of(settings: "BrokerSettings") -> "OwnLogin | None":
    """Return the login of this node at other brokers, if they demand one."""
    at_brokers = None if settings.is_single_node else own_login_at_brokers(settings)
    if at_brokers is None:
        return None
    from headrace.peers.own_login import own_login

    return own_login(at_brokers)


def broker_logins(
    settings: "BrokerSettings",
    cluster_id: Callable[[], str],
    clock: "Clock",
    image: "Callable[[], MetadataImage]",
    *,
    audit: "Audit | None" = None,
) -> "NodeLogins | None":
    """Return the logins of the data port; None if no listener has SASL.

    Built before the data is opened, because files of users and keys may be invalid.
    """
    return _logins(settings, settings.broker_listeners, cluster_id, clock, image, audit)


def controller_logins(
    settings: "BrokerSettings",
    cluster_id: Callable[[], str],
    clock: "Clock",
    image: "Callable[[], MetadataImage]",
    *,
    audit: "Audit | None" = None,
) -> "NodeLogins | None":
    """Return the logins of the controller listeners; None if none has SASL."""
    listeners = settings.controller_listeners if settings.is_controller else ()
    return _logins(settings, listeners, cluster_id, clock, image, audit)


def _logins(
    settings: "BrokerSettings",
    listeners: "Iterable[Listener]",
    cluster_id: Callable[[], str],
    clock: "Clock",
    image: "Callable[[], MetadataImage]",
    audit: "Audit | None",
) -> "NodeLogins | None":
    with_sasl = [one for one in listeners if has_sasl(settings, one.name)]
    if not with_sasl:
        return None
    from headrace.broker.logins.listeners import NodeLogins

    return NodeLogins(
        settings, with_sasl, cluster_id=cluster_id, image=image, clock=clock, audit=audit
    )
