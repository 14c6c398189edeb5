"""Administration of any Kafka cluster: `Admin(bootstrap).topics.create([...])`.

Each part sends requests to the broker in charge, retries retriable errors, and returns typed
values. An error of one of several resources is part of its outcome; an error of the whole request
is raised. The parts are imported on first use, because each imports its own messages.
"""

from collections.abc import Mapping
from functools import cached_property
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
    from headrace.client.tokens import Tokens
    from headrace.client.topics import Topics
    from headrace.client.transactions import Transactions
    from headrace.client.users import Users


class Admin:
    """Admin client of a cluster; close it, or use it in a `with` statement."""

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
    def users(self) -> "Users":
        """List SCRAM users, set passwords, remove credentials."""
        from headrace.client.users import Users

        return Users(self.cluster)

    @cached_property
    def tokens(self) -> "Tokens":
        """Create, list, renew and expire delegation tokens."""
        from headrace.client.tokens import Tokens

        return Tokens(self.cluster)

    @cached_property
    def reassignments(self) -> "Reassignments":
        """Start, cancel and list reassignments of partitions."""
        from headrace.client.reassignments import Reassignments

        return Reassignments(self.cluster)

    @cached_property
    def elections(self) -> "Elections":
        """Elect preferred leaders, or any remaining replica."""
        from headrace.client.elections import Elections

        return Elections(self.cluster)

    @cached_property
    def quotas(self) -> "Quotas":
        """Describe and alter quotas of users, clients and addresses."""
        from headrace.client.quotas import Quotas

        return Quotas(self.cluster)

    @cached_property
    def partitions(self) -> "Partitions":
        """Read offsets, producers and batches from leaders; delete records."""
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

    def __exit__(self, *error: object) -> None:
        self.close()
