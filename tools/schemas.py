"""Write the schema modules from the message definitions in Kafka's jars.

    python tools/schemas.py DIRECTORY

DIRECTORY has Kafka's jars (the `libs` of a distribution) or the JSON files extracted from them.
Only facts are copied: names, types, versions, defaults. Run it again to add an API (name it in
`APIS`) or to follow a new Kafka; the result is kept in git.
"""

import json
import keyword
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

PROTOCOL = Path(__file__).parent.parent / "src" / "headrace" / "protocol"

APIS = [
    "AddOffsetsToTxn",
    "AddPartitionsToTxn",
    "AddRaftVoter",
    "AllocateProducerIds",
    "AlterClientQuotas",
    "AlterConfigs",
    "AlterPartition",
    "AlterPartitionReassignments",
    "AlterShareGroupOffsets",
    "AlterUserScramCredentials",
    "ApiVersions",
    "AssignReplicasToDirs",
    "BeginQuorumEpoch",
    "BrokerHeartbeat",
    "BrokerRegistration",
    "ConsumerGroupDescribe",
    "ConsumerGroupHeartbeat",
    "ControllerRegistration",
    "CreateAcls",
    "CreateDelegationToken",
    "CreatePartitions",
    "CreateTopics",
    "DeleteAcls",
    "DeleteGroups",
    "DeleteRecords",
    "DeleteShareGroupOffsets",
    "DeleteShareGroupState",
    "DeleteTopics",
    "DescribeAcls",
    "DescribeClientQuotas",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeDelegationToken",
    "DescribeGroups",
    "DescribeLogDirs",
    "DescribeProducers",
    "DescribeQuorum",
    "DescribeShareGroupOffsets",
    "DescribeTopicPartitions",
    "DescribeTransactions",
    "DescribeUserScramCredentials",
    "ElectLeaders",
    "EndQuorumEpoch",
    "EndTxn",
    "Envelope",
    "ExpireDelegationToken",
    "Fetch",
    "FetchSnapshot",
    "FindCoordinator",
    "GetTelemetrySubscriptions",
    "Heartbeat",
    "IncrementalAlterConfigs",
    "InitProducerId",
    "InitializeShareGroupState",
    "JoinGroup",
    "LeaveGroup",
    "ListConfigResources",
    "ListGroups",
    "ListOffsets",
    "ListPartitionReassignments",
    "ListTransactions",
    "Metadata",
    "OffsetCommit",
    "OffsetDelete",
    "OffsetFetch",
    "OffsetForLeaderEpoch",
    "Produce",
    "PushTelemetry",
    "ReadShareGroupState",
    "ReadShareGroupStateSummary",
    "RemoveRaftVoter",
    "RenewDelegationToken",
    "SaslAuthenticate",
    "SaslHandshake",
    "ShareAcknowledge",
    "ShareFetch",
    "ShareGroupDescribe",
    "ShareGroupHeartbeat",
    "StreamsGroupDescribe",
    "StreamsGroupHeartbeat",
    "SyncGroup",
    "TxnOffsetCommit",
    "UnregisterBroker",
    "UpdateFeatures",
    "UpdateRaftVoter",
    "Vote",
    "WriteShareGroupState",
    "WriteTxnMarkers",
]

CONTROL_RECORDS = [
    "EndTxnMarker",
    "KRaftVersionRecord",
    "LeaderChangeMessage",
    "SnapshotFooterRecord",
    "SnapshotHeaderRecord",
    "VotersRecord",
]

COORDINATOR_RECORDS = {
    "groups": ("__consumer_offsets", ("Consumer", "Group", "Legacy", "Offset", "Share", "Streams")),
    "transactions": ("__transaction_state", ("TransactionLog",)),
    "shares": ("__share_group_state", ("ShareSnapshot", "ShareUpdate")),
}
"""For each module its topic, and the prefixes of the names of the topic's records."""

CONSUMER_PROTOCOL = ["ConsumerProtocolSubscription", "ConsumerProtocolAssignment"]

Definition = dict[str, Any]

PYTHON_TYPES = {
    "bool": ("bool", "False"),
    "int8": ("Int8", "0"),
    "int16": ("Int16", "0"),
    "uint16": ("Uint16", "0"),
    "int32": ("Int32", "0"),
    "uint32": ("Uint32", "0"),
    "int64": ("Int64", "0"),
    "float64": ("float", "0.0"),
    "string": ("str", '""'),
    "bytes": ("bytes", 'b""'),
    "records": ("Records", "None"),
    "uuid": ("Uuid", "ZERO"),
}
"""Kafka's primitive types as `protocol/message.py` names them, with their defaults."""

MESSAGE_NAMES = ["FrozenStructure", "Int8", "Int16", "Int32", "Int64"]
MESSAGE_NAMES += ["Message", "Records", "Structure", "Uint16", "Uint32"]
"""What schema modules import, in the order in which ruff sorts imports."""


class Versions(NamedTuple):
    """An inclusive range; `last` is None when it has no end."""

    first: int
    last: int | None

    @classmethod
    def parse(cls, text: str) -> "Versions":
        if text == "none":
            return cls(0, -1)
        first, separator, last = text.partition("-")
        if separator:
            return cls(int(first), int(last))
        return cls(int(first.rstrip("+")), None if text.endswith("+") else int(first))

    def covers(self, version: int) -> bool:
        return self.first <= version and (self.last is None or version <= self.last)

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def main(directory: Path) -> None:
    definitions = read_definitions(directory)
    schemas = PROTOCOL / "schemas"
    write(PROTOCOL / "api_keys.py", api_keys_module(definitions))
    for api in APIS:
        pair = [definitions[f"{api}Request"], definitions[f"{api}Response"]]
        unstable = pair[0].get("latestVersionUnstable")  # Only the request has it.
        pair[1]["latestVersionUnstable"] = unstable
        write(schemas / f"{snake(api)}.py", Module(api_title(api, pair[0]), pair).source())
    records = [one for one in definitions.values() if is_cluster_metadata(one)]
    records.sort(key=lambda one: int(one["apiKey"]))
    title = "The records of `__cluster_metadata`, by key."
    write(schemas / "records" / "metadata.py", Module(title, records).source())
    control = [definitions[name] for name in CONTROL_RECORDS]
    title = "The values of control records, which the broker and the quorum write themselves."
    write(schemas / "records" / "control.py", Module(title, control).source())
    write_coordinator_records(schemas / "records", definitions)
    protocol = [definitions[name] for name in CONSUMER_PROTOCOL]
    title = (
        "The messages that consumers put into the metadata and assignment bytes of a classic group."
    )
    write(schemas / "records" / "consumer_protocol.py", Module(title, protocol).source())
    title = "The principal of a client, as envelopes contain it."
    principals = [definitions["DefaultPrincipalData"]]
    write(schemas / "records" / "principals.py", Module(title, principals).source())
    formatted = [schemas, PROTOCOL / "api_keys.py"]
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", *formatted], check=True)


def write_coordinator_records(directory: Path, definitions: dict[str, Definition]) -> None:
    """One module per internal topic; a key and its value have the same number."""
    left = {name: one for name, one in definitions.items() if is_coordinator_record(one)}
    for module, (topic, starts) in reversed(COORDINATOR_RECORDS.items()):
        taken = [left.pop(name) for name in list(left) if name.startswith(starts)]
        taken.sort(key=lambda one: (int(one["apiKey"]), one["name"]))
        title = f"The keys and values of the records of `{topic}`, by type."
        write(directory / f"{module}.py", Module(title, taken).source())
    assert not left, left


def is_coordinator_record(definition: Definition) -> bool:
    return definition["type"] in ("coordinator-key", "coordinator-value")


def read_definitions(directory: Path) -> dict[str, Definition]:
    """Every message definition below `directory`, by name."""
    definitions = (parse(text) for text in definition_texts(directory))
    return {one["name"]: complete(one) for one in definitions if one and "name" in one}


def complete(definition: Definition) -> Definition:
    """Give a field that is only ever tagged the versions it is tagged in."""
    for field in definition.get("fields", ()):
        if "versions" not in field:
            field["versions"] = field["taggedVersions"]
    return definition


def definition_texts(directory: Path) -> Iterator[str]:
    for path in sorted(directory.rglob("*.json")):
        yield path.read_text()
    for path in sorted(directory.rglob("kafka-*.jar")):
        with ZipFile(path) as jar:
            for name in jar.namelist():
                if name.endswith(".json"):
                    yield jar.read(name).decode()


def parse(text: str) -> Definition | None:
    """A definition is JSON with comment lines; other JSON files in the jars are passed over."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("//"))
    try:
        definition = json.loads("\n".join(lines))
    except ValueError:
        return None
    return definition if isinstance(definition, dict) and "validVersions" in definition else None


def is_cluster_metadata(definition: Definition) -> bool:
    """The records of tiered storage have the same type, but live in a topic of their own."""
    return definition["type"] == "metadata" and not definition["name"].startswith("Remote")


def versions_of(message: Definition) -> range:
    """The versions that a released Kafka really advertises."""
    valid = Versions.parse(message["validVersions"])
    assert valid.last is not None
    return range(valid.first, valid.last + (not message.get("latestVersionUnstable")))


def flexible_from(message: Definition) -> int | None:
    flexible = message.get("flexibleVersions", "none")
    return None if flexible == "none" else Versions.parse(flexible).first


def snake(name: str) -> str:
    """`TopicId` to `topic_id`; KRaft is one word."""
    name = name.replace("KRaft", "Kraft")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def api_title(api: str, request: Definition) -> str:
    return f"{api}: API key {request['apiKey']}."


class Module:
    """The source of one schema module."""

    def __init__(self, title: str, messages: list[Definition]) -> None:
        self.title = title
        self.messages = messages
        self.chunks: list[str] = []
        names = Counter(
            name for one in messages for name in {struct for struct, _ in self.structs_of(one)}
        )
        self.ambiguous = {name for name, count in names.items() if count > 1}

    def source(self) -> str:
        for message in self.messages:
            self.add_message(message)
        body = "\n\n\n".join(self.chunks)
        words = set(re.findall(r"\w+", body))
        names = [name for name in MESSAGE_NAMES if name in words]
        imports = [f"from headrace.protocol.message import {', '.join(names)}"]
        if "Annotated" in words:
            imports.insert(0, "from typing import Annotated\n")
        if "Uuid" in words:
            zero = "ZERO, " if "ZERO" in words else ""
            imports.append(f"from headrace.protocol.uuids import {zero}Uuid")
        note = "Written by `tools/schemas.py`; `protocol/message.py` explains the annotations."
        return f'"""{self.title}\n\n{note}\n"""\n\n' + "\n".join(imports) + "\n\n\n" + body + "\n"

    def structs_of(self, message: Definition) -> Iterator[tuple[str, list[Definition]]]:
        """The structures of a message, the innermost first, each with its fields."""
        versions = versions_of(message)
        common = {one["name"]: one["fields"] for one in message.get("commonStructs", ())}
        seen: set[str] = set()

        def walk(fields: list[Definition]) -> Iterator[tuple[str, list[Definition]]]:
            for field in fields:
                name = field["type"].removeprefix("[]")
                if name in PYTHON_TYPES or name in seen or not is_carried(field, versions):
                    continue
                seen.add(name)
                inner = field.get("fields") or common[name]
                yield from walk(inner)
                yield name, inner

        yield from walk(message["fields"])

    def class_name(self, message: Definition, struct: str) -> str:
        """Kafka's name, with the message's before it where two messages use the same."""
        return message["name"] + struct if struct in self.ambiguous else struct

    def add_message(self, message: Definition) -> None:
        versions = versions_of(message)
        single = {  # Not in a list: frozen, so that all messages can share one default.
            field["type"]
            for _, fields in [("", message["fields"]), *self.structs_of(message)]
            for field in fields
        }
        for struct, fields in self.structs_of(message):
            name = self.class_name(message, struct)
            base = "FrozenStructure, frozen=True" if struct in single else "Structure"
            self.chunks.append(f"class {name}({base}):\n" + self.members(message, fields))
        flexible = flexible_from(message)
        head = [f"class {message['name']}(Message):"]
        if "apiKey" in message:
            head.append(f"    API_KEY = {message['apiKey']}")
        start = f"{versions.start}, " if versions.start else ""
        head.append(f"    VERSIONS = range({start}{versions.stop})")
        if flexible is not None:
            head.append(f"    FLEXIBLE_FROM = {flexible}")
        members = self.members(message, message["fields"])
        self.chunks.append("\n".join(head) + "\n" + (f"\n{members}" if members else ""))

    def members(self, message: Definition, fields: list[Definition]) -> str:
        versions = versions_of(message)
        carried = [field for field in fields if is_carried(field, versions)]
        return "\n".join(f"    {self.attribute(message, field)}" for field in carried)

    def attribute(self, message: Definition, field: Definition) -> str:
        name = snake(field["name"])
        assert not keyword.iskeyword(name), name
        kind = field["type"].removeprefix("[]")
        hint, default = PYTHON_TYPES.get(kind, (self.class_name(message, kind), ""))
        if field["type"].startswith("[]"):
            hint, default = f"list[{hint}]", "[]"
        elif not default:
            default = f"{hint}()"
        elif kind == "records" and "nullableVersions" not in field:
            default = 'b""'
        if "nullableVersions" in field:
            hint += " | None"
        if field.get("default") is not None and field["default"] != "":
            default = default_of(kind, str(field["default"]))
        return f'{name}: Annotated[{hint}, "{" ".join(notes(field))}"] = {default}'


def is_carried(field: Definition, versions: range) -> bool:
    """Return whether any advertised version has the field."""
    own = Versions.parse(field["versions"])
    return any(own.covers(version) for version in versions)


def notes(field: Definition) -> Iterator[str]:
    own = Versions.parse(field["versions"])
    yield str(own)
    if "nullableVersions" in field:
        nullable = Versions.parse(field["nullableVersions"])
        if nullable.first > own.first or nullable.last not in (own.last, None):
            yield f"nullable={nullable}"
    if "tag" in field:
        assert field["taggedVersions"] == field["versions"], field
        yield f"tag={field['tag']}"
    if field.get("ignorable"):
        yield "ignorable"


def default_of(kind: str, text: str) -> str:
    if text == "null":
        return "None"
    if kind == "bool":
        return text.capitalize()
    if kind == "string":
        return json.dumps(text)
    return text if kind == "float64" else str(int(text, 0))


def api_keys_module(definitions: dict[str, Definition]) -> str:
    requests = [one for one in definitions.values() if one["type"] == "request"]
    requests.sort(key=lambda one: int(one["apiKey"]))
    names = {one["apiKey"]: snake(one["name"].removesuffix("Request")).upper() for one in requests}
    keys = "\n".join(f"    {name} = {key}" for key, name in names.items())
    flexible = "\n".join(
        f"    ApiKey.{names[one['apiKey']]}: {first},"
        for one in requests
        if (first := flexible_from(one)) is not None and one["validVersions"] != "none"
    )
    return f'''"""The APIs of Kafka, and the version from which each uses the flexible encoding.

Written by `tools/schemas.py`.
"""

from enum import IntEnum


class ApiKey(IntEnum):
    """The number that names an API in a request's header, for all of Kafka's APIs."""

{keys}


FLEXIBLE_FROM: dict[int, int] = {{
{flexible}
}}
"""The first flexible version; an API that is not listed has none. Headers depend on it."""
'''


def write(path: Path, source: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
