"""Users and quotas of a cluster: any node accepts changes, and all nodes have them."""

from functools import partial

import headrace
from headrace.client.quotas import ClientQuota
from headrace.client.users import ScramUser
from headrace.security.sasl.scram import Mechanism
from headrace.testing.cluster import ClusterNode, ClusterProcess
from tests.processes.nodes import eventually


def state_of(node: ClusterNode) -> tuple[list[ScramUser], list[ClientQuota]]:
    """The users and quotas in the image of one node."""
    with headrace.Admin(node.bootstrap_servers) as admin:
        return admin.users.describe(), admin.quotas.describe()


def test_users_and_quotas_are_those_of_the_cluster(headrace_cluster: ClusterProcess) -> None:
    """SEC-5, SEC-8, QUO-2: brokers forward changes to the active controller."""
    expected_users, expected_quotas = [], []
    for number, node in enumerate(headrace_cluster.nodes):
        name = f"user-{number}"
        with headrace.Admin(node.bootstrap_servers) as admin:
            assert admin.users.set_password(name, "secret", Mechanism.SHA_256).error is None
            assert admin.quotas.alter({"user": name}, {"producer_byte_rate": 5.0}).error is None
            refused = admin.users.remove(name, Mechanism.SHA_512)
            assert refused.error == "RESOURCE_NOT_FOUND"
        expected_users.append(ScramUser(name, {"SCRAM-SHA-256": 4096}))
        expected_quotas.append(ClientQuota({"user": name}, {"producer_byte_rate": 5.0}))
    expected = (expected_users, expected_quotas)
    for node in headrace_cluster.nodes:
        eventually(partial(state_of, node), expect=lambda found: found == expected)

    first = headrace_cluster.active_controller()
    first.kill()
    successor = headrace_cluster.active_controller()
    with headrace.Admin(successor.bootstrap_servers) as admin:
        assert admin.users.remove("user-0", Mechanism.SHA_256).error is None
    first.start()
    expected = (expected_users[1:], expected_quotas)
    eventually(lambda: state_of(first), expect=lambda found: found == expected)
