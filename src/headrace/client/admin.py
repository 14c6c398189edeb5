"""The administration of any Kafka cluster: `Admin(bootstrap).topics.create([...])` and the like.

Each part asks the broker that can answer, tries again while a refusal may pass, and returns
typed values. What fails for one of several things is told with that thing; what fails as a whole
is raised. The parts are imported on first use, as each brings its own messages along.
"""

from collections.abc import Mapping
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING

from headrace.client.cluster import Cluster
from headrace.client.properties import Properties

if TYPE_CHECKING:
    from headrace.client.acls import Acls
    from headrace.client.configs import Configs
    from headrace.client.elections import Elections
    from headrace.client.groups import Groups
    from headrace.client.nodes import Nodes
    from headrace.client.partitions import Partitions
    from headrace.client.quotas import Quotas
    from headrace.client.reassignments import Reassignments
    from headrace.client.topics import Topics
    from headrace.client.transactions import Transactions


class Admin:
    """Administers the cluster behind some bootstrap addresses; close it, or use it in a `with`."""

    def __init__(
        self,
        bootstrap: Properties,
        properties: Mapping[str, str] | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        given = {} if isinstance(bootstrap, str) else dict(bootstrap)
        servers = bootstrap if isinstance(bootstrap, str) else given.get("bootstrap.servers", "")
        self.cluster = Cluster(servers, {**given, **(properties or {})}, timeout_s)

    @cached_property
    def topics(self) -> "Topics":
        """List, describe, create, delete topics; add partitions."""
        from headrace.client.topics import Topics

        return Topics(self.cluster)

    @cached_property
    def configs(self) -> "Configs":
        """Describe and alter settings."""
        from headrace.client.configs import Configs

        return Configs(self.cluster)

    @cached_property
    def acls(self) -> "Acls":
        """Find, add and remove access rules."""
        from headrace.client.acls import Acls

        return Acls(self.cluster)

    @cached_property
    def reassignments(self) -> "Reassignments":
        """Move partitions; those that are being moved."""
        from headrace.client.reassignments import Reassignments

        return Reassignments(self.cluster)

    @cached_property
    def elections(self) -> "Elections":
        """Let preferred replicas lead, or any that is left."""
        from headrace.client.elections import Elections

        return Elections(self.cluster)

    @cached_property
    def quotas(self) -> "Quotas":
        """What users, clients and addresses may use."""
        from headrace.client.quotas import Quotas

        return Quotas(self.cluster)

    @cached_property
    def partitions(self) -> "Partitions":
        """What leaders know: offsets, producers, batches; delete records."""
        from headrace.client.partitions import Partitions

        return Partitions(self.cluster)

    @cached_property
    def nodes(self) -> "Nodes":
        """Brokers, quorum, features, log directories."""
        from headrace.client.nodes import Nodes

        return Nodes(self.cluster)

    @cached_property
    def groups(self) -> "Groups":
        """List, describe, reset and delete groups; their lag."""
        from headrace.client.groups import Groups

        return Groups(self.cluster)

    @cached_property
    def transactions(self) -> "Transactions":
        """List and describe transactions, abort hanging ones."""
        from headrace.client.transactions import Transactions

        return Transactions(self.cluster)

    def close(self) -> None:
        self.cluster.close()

    def __enter__(self) -> "Admin":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
