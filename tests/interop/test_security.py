"""Kafka's security tools on our brokers, and the security of a directory that changes its owner."""

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from headrace.client.admin import Admin
from headrace.security.acls import AclFilter
from tests.clients.librdkafka import create_topic, produce, read_values, values
from tests.conftest import watch
from tests.interop.conftest import PATIENT, Pair
from tests.processes.kafka import KafkaRelease
from tests.processes.kafka_tools import KafkaTools, running_tools
from tests.processes.nodes import Headrace, Kafka, Node, eventually

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    **PATIENT,
}
"""Clients are anonymous here. They may do everything on resources without any rule."""

DENY = ("--deny-principal", "User:ANONYMOUS")
ALLOW = ("--allow-principal", "User:ANONYMOUS")


@pytest.fixture(scope="module")
def tools(kafka_release: KafkaRelease) -> Iterator[KafkaTools]:
    with running_tools(kafka_release) as running:
        yield running


@pytest.fixture
def ruled(
    kafka_release: KafkaRelease,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Pair]:
    """Headrace and Kafka by turns on one directory, each with an authorizer."""
    directory = tmp_path_factory.mktemp("ruled")
    pair = Pair(Node(Headrace(), directory, AUTHORIZER), Node(Kafka(), directory, AUTHORIZER))
    for node in pair:
        watch(request, node)
    yield pair
    for node in pair:
        if node.is_running:
            node.kill()


def acls(tools: KafkaTools, node: Node, *words: str) -> str:
    return tools.run("kafka-acls", "--bootstrap-server", node.address, *words)


def rules(node: Node) -> list[str]:
    with Admin(node.address, timeout_s=20) as admin:
        return [str(rule) for rule in admin.acls.find(AclFilter())]


def refusal(node: Node, topic: str) -> int:
    """Return the error of producing to a topic; 0 if the record was accepted."""
    try:
        produce(node, topic, values("x"))
    except KafkaException as error:
        code: int = error.args[0].code()
        return code
    return 0


class TestRules:
    def test_kafka_acls_adds_lists_and_removes_every_kind_of_rule(
        self, ruled: Pair, tools: KafkaTools
    ) -> None:
        """SEC-7"""
        ours = ruled.headrace
        ours.start()
        for resource in (
            ("--topic", "orders"),
            ("--topic", "*"),
            ("--group", "billing", "--resource-pattern-type", "prefixed"),
            ("--transactional-id", "t"),
            ("--delegation-token", "token"),
            ("--user-principal", "User:bob"),
        ):
            acls(tools, ours, "--add", "--allow-principal", "User:ada", *resource)
        acls(tools, ours, "--add", "--allow-principal", "User:ANONYMOUS", "--cluster")
        host = ("--deny-principal", "User:eve", "--deny-host", "10.0.0.7")
        acls(tools, ours, "--add", *host, "--operation", "Read", "--topic", "orders")
        assert len(rules(ours)) == 8

        listed = acls(tools, ours, "--list")
        assert listed.count("operation=ALL, permissionType=ALLOW") == 7
        assert "principal=User:eve, host=10.0.0.7, operation=READ, permissionType=DENY" in listed

        matching = ("--topic", "orders", "--resource-pattern-type", "match")
        assert "name=*" in acls(tools, ours, "--list", *matching)
        acls(tools, ours, "--remove", "--force", *matching)
        assert "resourceType=TOPIC" not in acls(tools, ours, "--list")
        acls(tools, ours, "--remove", "--force", "--group", "*", "--resource-pattern-type", "any")
        assert len(rules(ours)) == 5

    def test_a_rule_that_exists_is_added_without_a_copy(
        self, ruled: Pair, tools: KafkaTools
    ) -> None:
        ours = ruled.headrace
        ours.start()
        words = ("--add", "--allow-principal", "User:ada", "--producer", "--topic", "orders")
        acls(tools, ours, *words)
        first = rules(ours)
        acls(tools, ours, *words)
        assert rules(ours) == first

    def test_a_client_without_rights_is_refused_by_the_tool(
        self, ruled: Pair, tools: KafkaTools
    ) -> None:
        ours = ruled.headrace
        ours.start()
        acls(tools, ours, "--add", "--allow-principal", "User:admin", "--cluster")
        shown = tools.try_run("kafka-acls", "--bootstrap-server", ours.address, "--list")
        assert "ClusterAuthorizationException" in shown.text

    def test_without_an_authorizer_the_tool_reports_that(
        self, ruled: Pair, tools: KafkaTools
    ) -> None:
        ours = ruled.headrace
        ours.settings = dict(PATIENT)
        ours.start()
        shown = tools.try_run("kafka-acls", "--bootstrap-server", ours.address, "--list")
        assert "SecurityDisabledException" in shown.text
        words = ("--add", "--allow-principal", "User:ada", "--cluster")
        shown = tools.try_run("kafka-acls", "--bootstrap-server", ours.address, *words)
        assert "SecurityDisabledException" in shown.text


class TestOneDirectory:
    def test_rules_made_by_headrace_are_in_force_in_kafka_and_back(
        self, ruled: Pair, tools: KafkaTools
    ) -> None:
        """SEC-7, SEC-8"""
        ours, theirs = ruled
        ours.start()
        for topic in ("open", "closed", "secret-1"):
            create_topic(ours, name=topic)
        acls(tools, ours, "--add", *DENY, "--operation", "Write", "--topic", "closed")
        acls(tools, ours, "--add", *ALLOW, "--operation", "Read", "--topic", "closed")
        secret = ("--topic", "secret-", "--resource-pattern-type", "prefixed")
        acls(tools, ours, "--add", "--allow-principal", "User:ada", *secret)
        expected = {
            "open": 0,
            "closed": KafkaError.TOPIC_AUTHORIZATION_FAILED,
            "secret-1": KafkaError.TOPIC_AUTHORIZATION_FAILED,
        }
        assert {topic: refusal(ours, topic) for topic in expected} == expected
        listed = rules(ours)
        ours.stop()

        theirs.start()
        assert rules(theirs) == listed
        assert {topic: refusal(theirs, topic) for topic in expected} == expected
        acls(tools, theirs, "--remove", "--force", *secret)
        acls(tools, theirs, "--add", *DENY, "--operation", "Write", "--topic", "open")
        eventually(lambda: refusal(theirs, "secret-1"), expect=lambda error: not error)
        listed = rules(theirs)
        theirs.stop()

        ours.start()
        assert rules(ours) == listed
        assert refusal(ours, "open") == KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert refusal(ours, "secret-1") == 0
        assert len(read_values(ours, "secret-1")) == 2

    def test_rules_survive_in_snapshots_of_both(self, ruled: Pair, tools: KafkaTools) -> None:
        """SEC-8"""
        ours, theirs = ruled
        often = {"metadata.log.max.record.bytes.between.snapshots": "100"}
        ours.settings |= often
        theirs.settings |= often
        ours.start()
        for number in range(20):
            words = ("--add", "--allow-principal", f"User:u{number}", "--topic", f"t{number}")
            acls(tools, ours, *words)
        listed = rules(ours)
        eventually(lambda: list(ours.data.glob("__cluster_metadata-0/*.checkpoint")))
        ours.stop()
        theirs.start()
        assert rules(theirs) == listed
        theirs.stop()
        ours.start()
        assert rules(ours) == listed
