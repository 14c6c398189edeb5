"""`headrace up --nodes N` and `--brokers N`: from options to a running cluster."""

import datetime as dt
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from headrace.cli.cluster_parent import Options, run_cluster
from headrace.cli.defaults import DEFAULT_BOOTSTRAP, DEFAULT_DATA
from headrace.cli.extras import require
from headrace.cli.local_cluster import LOOPBACK, LocalCluster, Shape, node_properties, planned
from headrace.protocol.uuids import random_uuid, to_text
from headrace.runtime.logging import configure
from headrace.runtime.ports import free_port
from headrace.settings.broker_loading import load

if TYPE_CHECKING:
    from headrace.cli.local_security import LocalSecurity

_REGISTRY = "headrace.registry.listeners"
_REST = "headrace.rest.listeners"


class ClusterOptions(msgspec.Struct, frozen=True):
    """The options of `headrace up` that make a cluster."""

    nodes: int | None = None
    brokers: int | None = None
    data: str | None = None
    listen: str | None = None
    metrics: int | None = None
    registry: str | None = None
    rest: str | None = None
    secure: bool = False
    restarts: bool = True

    @property
    def shape(self) -> Shape:
        if self.nodes is not None:
            return Shape.of_nodes(self.nodes)
        assert self.brokers is not None, "one of both is given"
        return Shape.of_brokers(self.brokers)


def run(given: ClusterOptions, properties: Mapping[str, str]) -> int:
    """Plan, format and run the cluster; return the exit code.

    `properties` are those of `--config` and `--set`, which apply to every node.
    """
    cluster = planned(
        given.data or DEFAULT_DATA,
        given.shape,
        given.listen,
        DEFAULT_BOOTSTRAP,
        partial(free_port, LOOPBACK),
        lambda: to_text(random_uuid()),
        is_secured=given.secure,
    )
    options = node_options(cluster, given, properties)
    configure(options.settings.headrace_log_format, options.settings.headrace_log_level)
    return run_cluster(cluster, options)


def node_options(
    cluster: LocalCluster, given: ClusterOptions, properties: Mapping[str, str]
) -> Options:
    """Check the properties once for all nodes; the parent starts registry and REST proxy."""
    shared = {name: text for name, text in properties.items() if name not in (_REGISTRY, _REST)}
    security = _security(cluster) if given.secure else None
    first = cluster.nodes[0]
    settings, _ = load(node_properties(cluster, first, shared, given.metrics, security))
    settings = msgspec.structs.replace(
        settings,
        headrace_registry_listeners=given.registry or properties.get(_REGISTRY, ""),
        headrace_rest_listeners=given.rest or properties.get(_REST, ""),
    )
    return Options(
        settings=settings,
        shared=shared,
        metrics_port=given.metrics,
        restarts=given.restarts,
        security=security,
    )


def _security(cluster: LocalCluster) -> "LocalSecurity":
    """Return the security of the nodes, which is made if it is new."""
    require("security")
    from headrace.cli.local_security import prepare_cluster

    return prepare_cluster(cluster, dt.datetime.now(dt.UTC))
