"""`headrace up --secure` with one node: its properties, its first user, and the settings printed.

The node's log directory is DATA/node-1, as in a cluster, and its secrets are in DATA/security.
"""

import datetime as dt
import os
import time
from collections.abc import Mapping

from headrace.cli.defaults import DEFAULT_BOOTSTRAP, DEFAULT_DATA
from headrace.cli.extras import require
from headrace.cli.local_cluster import CLIENTS, check_secured, check_single
from headrace.cli.local_security import LocalSecurity, hosts_of, prepare
from headrace.errors import InvalidConfig
from headrace.runtime import files
from headrace.settings.broker import BrokerSettings
from headrace.settings.properties import render

NODE = "node-1"

_CHOSEN = (
    "listeners",
    "inter.broker.listener.name",
    "security.inter.broker.protocol",
    "log.dir",
    "log.dirs",
    "metadata.log.dir",
)
"""Properties that `--secure` chooses."""


def secured_properties(
    properties: Mapping[str, str], data: str | None, listen: str | None
) -> tuple[dict[str, str], LocalSecurity]:
    """Return the properties of a secured node, and its security, which is made if it is new.

    `properties` are those of `--config`, `--set` and the other options.
    """
    require("security")
    if chosen := [name for name in _CHOSEN if name in properties]:
        raise InvalidConfig(
            f"{chosen[0]} is chosen by --secure: remove it and use --listen and --data, or write"
            " all properties of security yourself and leave out --secure"
        )
    place, address = data or DEFAULT_DATA, listen or DEFAULT_BOOTSTRAP
    check_single(place)
    check_secured(place)
    host, _, port = address.rpartition(":")
    every_interface = host in ("", "0.0.0.0", "[::]")
    hosts = hosts_of(host.strip("[]"), properties.get("advertised.listeners", ""))
    security = prepare(place, (NODE,), hosts, dt.datetime.now(dt.UTC), are_peers=False)
    security.write_settings(address)
    secured = {
        "listeners": f"{CLIENTS}://{'' if every_interface else host}:{port}",
        "log.dirs": os.path.join(place, NODE),
        **security.node_properties(NODE, properties),
    }
    comment = "Written by `headrace up --secure` at each start: change the options there instead."
    path = os.path.join(place, f"{NODE}.properties")
    files.replace_secret(path, render(secured, comment).encode())
    return secured, security


def format_node(settings: BrokerSettings, security: LocalSecurity) -> None:
    """Format the node with its first user, unless it is formatted."""
    if os.path.exists(os.path.join(settings.metadata_directory, "meta.properties")):
        return
    # Only needed once in the life of a node.
    from headrace.metadata.image import unused_endpoint
    from headrace.metadata.log.formatting import NewNode, format_directories

    if not settings.may_begin_cluster:
        raise InvalidConfig("--secure without --nodes starts a node that is alone")
    node = NewNode(
        node_id=settings.node_id,
        controller_endpoint=unused_endpoint(settings.controller_listener_names[0]),
        bootstrap=[security.admin_record()],
    )
    now_ms = time.time_ns() // 1_000_000
    format_directories(settings.directories, settings.metadata_directory, node, now_ms)
