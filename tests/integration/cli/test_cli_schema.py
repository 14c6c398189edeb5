"""`headrace schema` with a real registry, and topics moved to new schemas."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as client
from headrace import serdes
from headrace.serdes import RegistryClient
from tests.builders.avro_versions import EMAIL, ID, NOTE, order_text
from tests.clients.librdkafka import Sent, create_topic, produce, read, unique_name
from tests.integration.cli.commands import Done, headrace
from tests.processes.nodes import Node
from tests.processes.registries import RegistryProcess, running_registry

TRANSFORM = """
def add_email(order):
    return {**order, "email": f"{order['id']}@shop"}
"""


@pytest.fixture(scope="module")
def registry(
    shared_node: Node, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistryProcess]:
    directory = tmp_path_factory.mktemp("schema")
    with running_registry(shared_node.address, directory, directory.name) as registry:
        yield registry


class Shell:
    """Runs `headrace schema` in a folder of files."""

    def __init__(self, node: Node, registry: RegistryProcess, folder: Path) -> None:
        self.node = node
        self.url = registry.url
        self.folder = folder
        self.subject = unique_name("orders")

    def run(self, name: str, *arguments: str) -> Done:
        given = [str(self.folder / one) if one in self.files else one for one in arguments]
        return headrace(self.node, "schema", name, *given, "--registry", self.url)

    def ok(self, name: str, *arguments: str) -> Done:
        done = self.run(name, *arguments)
        assert done.code == 0, done.err
        return done

    @property
    def files(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture
def shell(node: Node, registry: RegistryProcess, tmp_path: Path) -> Shell:
    (tmp_path / "v1.avsc").write_text(order_text(ID))
    (tmp_path / "note.avsc").write_text(order_text(ID, NOTE))
    (tmp_path / "email.avsc").write_text(order_text(ID, EMAIL))
    (tmp_path / "moving.py").write_text(TRANSFORM)
    return Shell(node, registry, tmp_path)


@pytest.fixture
def subject(shell: Shell) -> str:
    """With two versions."""
    shell.ok("register", shell.subject, "v1.avsc")
    shell.ok("register", shell.subject, "note.avsc")
    return shell.subject


def test_a_file_becomes_the_next_version(shell: Shell) -> None:
    """SCH-11"""
    first = shell.ok("register", shell.subject, "v1.avsc", "--json").document
    again = shell.ok("register", shell.subject, "v1.avsc", "--json").document
    second = shell.ok("register", shell.subject, "note.avsc").out
    assert first == again
    assert first["version"] == 1
    assert second.startswith(f"{shell.subject} version 2 has the id ")


def test_a_file_may_refer_to_registered_schemas(shell: Shell) -> None:
    """SCH-13"""
    (shell.folder / "bill.avsc").write_text(
        order_text({"name": "of", "type": "Order"}, name="Bill")
    )
    shell.ok("register", shell.subject, "v1.avsc")
    shell.ok(
        *("register", f"{shell.subject}-bill", "bill.avsc"),
        *("--reference", f"Order={shell.subject}:1"),
    )
    made = shell.ok("generate", f"{shell.subject}-bill").out
    assert "class Order:" in made


def test_rules_and_metadata_are_registered_with_a_file(shell: Shell) -> None:
    """SCH-11"""
    rule = {"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "true"}
    (shell.folder / "rules.json").write_text(json.dumps({"domainRules": [rule]}))
    (shell.folder / "about.json").write_text('{"properties": {"owner": "shop"}}')
    shell.ok(
        *("register", shell.subject, "v1.avsc"),
        *("--rules", "rules.json", "--metadata", "about.json"),
    )
    reported = shell.ok("show", shell.subject, "--json").document
    assert reported["ruleSet"]["domainRules"][0]["expr"] == "true"
    assert reported["metadata"]["properties"]["owner"] == "shop"


def test_subjects_are_listed_with_their_versions(shell: Shell, subject: str) -> None:
    (listed,) = shell.ok("list", subject, "--json").document
    assert (listed["subject"], listed["versions"], listed["type"]) == (subject, [1, 2], "AVRO")
    assert listed["compatibility"] == "BACKWARD"
    assert subject in shell.ok("list").out


def test_texts_are_shown_by_subject_version_and_id(shell: Shell, subject: str) -> None:
    newest = shell.ok("show", subject, "--json").document
    assert json.loads(shell.ok("show", f"id:{newest['id']}").out) == json.loads(newest["schema"])
    assert '"note"' not in shell.ok("show", f"{subject}:1").out


def test_a_diff_is_between_versions_or_with_a_file(shell: Shell, subject: str) -> None:
    assert "+ Order.note" in shell.ok("diff", subject).out
    assert "- Order.note" in shell.ok("diff", f"{subject}:2", f"{subject}:1").out
    assert "+ Order.email" in shell.ok("diff", f"{subject}:1", "email.avsc").out


def test_a_file_is_checked_by_the_level_of_the_subject(shell: Shell, subject: str) -> None:
    """SCH-12"""
    assert shell.run("check", subject, "v1.avsc").code == 0
    refused = shell.run("check", subject, "email.avsc")
    assert refused.code == 1
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in refused.out


def test_a_file_is_checked_by_another_level(shell: Shell, subject: str) -> None:
    """SCH-12"""
    assert shell.run("check", subject, "email.avsc", "--level", "FORWARD").code == 0
    assert shell.run("check", subject, "email.avsc", "--level", "FULL").code == 1


def test_all_versions_count_for_the_levels_that_a_change_keeps(shell: Shell, subject: str) -> None:
    """SCH-8"""
    reported = shell.ok("evolve", subject, "email.avsc", "--json").document
    assert reported["levels"] == ["NONE", "FORWARD", "FORWARD_TRANSITIVE"]


def test_a_version_is_deleted_and_comes_back(shell: Shell, subject: str) -> None:
    """SCH-11"""
    assert "1 version deleted: 2" in shell.ok("delete", f"{subject}:2").out
    shell.ok("register", subject, "note.avsc")
    assert shell.ok("list", subject, "--json").document[0]["versions"] == [1, 3]


def test_a_subject_is_deleted_for_good(shell: Shell, subject: str) -> None:
    """SCH-11"""
    assert "2 versions deleted permanently: 1, 2" in shell.ok("delete", subject, "--permanent").out
    assert shell.ok("list", subject, "--deleted", "--json").document == []


def test_the_newest_version_is_deleted_for_good_and_no_other(shell: Shell, subject: str) -> None:
    shell.ok("delete", f"{subject}:latest", "--permanent")
    assert shell.ok("list", subject, "--deleted", "--json").document[0]["versions"] == [1]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("show", "nothing-here"), "not found"),
        (("show", "id:999999"), "no schema 999999"),
        (("register", "x", "broken.avsc"), "HTTP 422"),
        (("show", "nothing.avsc"), "No such file"),
    ],
)
def test_errors_are_reported_in_one_line(
    shell: Shell, arguments: tuple[str, ...], reason: str
) -> None:
    (shell.folder / "broken.avsc").write_text('{"type": "recrod"}')
    done = shell.run(*arguments)
    assert done.code == 1
    assert done.err.startswith("headrace: ")
    assert reason in done.err
    assert done.err.count("\n") == 1


def test_a_topic_is_moved_to_a_schema_that_cannot_read_it(shell: Shell, node: Node) -> None:
    """SCH-8: keys, headers and times stay, values are transformed, tombstones stay."""
    source, target = create_topic(node, partitions=2), create_topic(node, partitions=2)
    with RegistryClient(shell.url) as registry:
        write = serdes.AvroSerializer(registry, order_text(ID), id_in_header=True)
        with client.Producer(
            {"bootstrap.servers": node.address}, value_serializer=write
        ) as producer:
            for number in range(20):
                headers = {"trace": b"%d" % number}
                producer.send(source, {"id": number}, b"%d" % number, headers=headers)
            producer.send(source, None, b"gone", partition=1)
        moved = shell.ok(
            *("evolve", f"{source}-value", "email.avsc", "--topic", source, "--to", target),
            *("--transform", f"{shell.folder / 'moving.py'}:add_email"),
        )
        assert "21 records moved" in moved.out
        found = [record for number in (0, 1) for record in read(node, target, partition=number)]
        reader = serdes.AvroDeserializer(registry)
        values: dict[Any, Any] = {
            record.key(): reader.of_values(target, record.value()) for record in found
        }
    assert values.pop(b"gone") is None
    assert values == {
        b"%d" % number: {"id": number, "email": f"{number}@shop"} for number in range(20)
    }
    stayed: list[Any] = [pair for record in found for pair in record.headers() or ()]
    assert {name for name, _ in stayed} == {"trace"}


def test_a_topic_is_projected_to_a_schema_that_can_read_it(
    shell: Shell, node: Node, topic: str
) -> None:
    """SCH-8"""
    target = create_topic(node)
    with RegistryClient(shell.url) as registry:
        write = serdes.AvroSerializer(registry, order_text(ID))
        produce(node, topic, [Sent(write.of_values(topic, {"id": 7}))])
        shell.ok("evolve", f"{topic}-value", "note.avsc", "--topic", topic, "--to", target)
        (record,) = read(node, target)
        reader = serdes.AvroDeserializer(registry)
        assert reader.of_values(target, record.value()) == {"id": 7, "note": None}


def test_a_record_that_cannot_be_moved_is_named(shell: Shell, node: Node, topic: str) -> None:
    target = create_topic(node)
    shell.ok("register", shell.subject, "v1.avsc")
    produce(node, topic, [Sent(b"plain text")])
    failed = shell.run("evolve", shell.subject, "note.avsc", "--topic", topic, "--to", target)
    assert failed.code == 1
    assert f"{topic}-0 at offset 0: the value does not begin with a zero byte" in failed.err


OLD_JSON = '{"type": "object", "properties": {"id": {"type": "integer"}}}'
NEW_JSON = OLD_JSON.replace("}}}", '}, "note": {"type": "string"}}, "required": ["note"]}')
OLD_PROTOBUF = 'syntax = "proto3"; message Order { int64 id = 1; }'
NEW_PROTOBUF = 'syntax = "proto3"; message Order { int64 id = 1; string note = 2; }'


def test_a_topic_in_json_is_moved(shell: Shell, node: Node, topic: str) -> None:
    """SCH-8: the transform provides the values that the new schema requires."""
    target = create_topic(node)
    (shell.folder / "new.json").write_text(NEW_JSON)
    (shell.folder / "noting.py").write_text(
        "def note(value):\n    return {**value, 'note': 'moved'}\n"
    )
    with RegistryClient(shell.url) as registry:
        write = serdes.JsonSchemaSerializer(registry, OLD_JSON)
        produce(node, topic, [Sent(write.of_values(topic, {"id": 7}))])
        step = ("evolve", f"{topic}-value", "new.json", "--type", "JSON")
        places = ("--topic", topic, "--to", target)
        assert "give --transform" in shell.run(*step, *places).err
        shell.ok(*step, *places, "--transform", f"{shell.folder / 'noting.py'}:note")
        (record,) = read(node, target)
        reader = serdes.JsonSchemaDeserializer(registry)
        assert reader.of_values(target, record.value()) == {"id": 7, "note": "moved"}


def test_a_topic_in_protobuf_is_moved(shell: Shell, node: Node, topic: str) -> None:
    """SCH-8"""
    target = create_topic(node)
    (shell.folder / "new.proto").write_text(NEW_PROTOBUF)
    with RegistryClient(shell.url) as registry:
        write = serdes.ProtobufSerializer(registry, OLD_PROTOBUF)
        produce(node, topic, [Sent(write.of_values(topic, {"id": 7}))])
        shell.ok("evolve", f"{topic}-value", "new.proto", "--topic", topic, "--to", target)
        (record,) = read(node, target)
        found = serdes.ProtobufDeserializer(registry).of_values(target, record.value())
        latest = registry.latest(f"{target}-value")
    assert (found.id, found.note) == (7, "")
    assert "note" in latest.text


def test_consume_decodes_values_by_the_registry(shell: Shell) -> None:
    topic = create_topic(shell.node)
    with RegistryClient(shell.url) as registry:
        write = serdes.AvroSerializer(registry, order_text(ID))
        for key, value in (("a", write.of_values(topic, {"id": 7})), ("b", b"plain")):
            produce(shell.node, topic, [Sent(value=value, key=key.encode())])
    given = ("consume", topic, "--from-beginning", "--exit-at-end", "--registry", shell.url)
    assert headrace(shell.node, *given).out == '{"id":7}\nplain\n'
    lines = headrace(shell.node, *given, "--json").documents
    assert [line["value"] for line in lines] == [{"id": 7}, "plain"]
