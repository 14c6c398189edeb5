"""Writes `docs/reference/compatibility.md`: supported and missing parts of Kafka's protocol.

The list comes from the broker's own table of APIs and from the first sentence of each handler.
It is compared with the APIs that a stock Kafka 4.3 broker advertises. Each engine is listed with
the test that runs it, or as not tried.
"""

import argparse
import ast
import sys
import textwrap
from pathlib import Path

from headrace.broker.api.registry import APIS, Entry
from headrace.protocol.api_keys import ApiKey

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "compatibility.md"
HANDLERS = ROOT / "src" / "headrace" / "broker" / "api"

# As answered by ApiVersions of Apache Kafka 4.3.1, stock settings: the lowest and highest version.
KAFKA = {
    0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6),
    11: (0, 9), 12: (0, 4), 13: (0, 5), 14: (0, 5), 15: (0, 6), 16: (0, 5), 17: (0, 1),
    18: (0, 4), 19: (2, 7), 20: (1, 6), 21: (0, 2), 22: (0, 5), 23: (2, 4), 24: (0, 5),
    25: (0, 4), 26: (0, 5), 27: (1, 2), 28: (0, 5), 29: (1, 3), 30: (1, 3), 31: (1, 3),
    32: (1, 4), 33: (0, 2), 34: (1, 2), 35: (1, 5), 36: (0, 2), 37: (0, 3), 38: (1, 3),
    39: (1, 2), 40: (1, 2), 41: (1, 3), 42: (0, 2), 43: (0, 2), 44: (0, 1), 45: (0, 1),
    46: (0, 0), 47: (0, 0), 48: (0, 1), 49: (0, 1), 50: (0, 0), 51: (0, 0), 55: (0, 2),
    57: (0, 2), 60: (0, 2), 61: (0, 0), 64: (0, 0), 65: (0, 0), 66: (0, 2), 68: (0, 1),
    69: (0, 1), 74: (0, 1), 75: (0, 0), 76: (1, 1), 77: (1, 1), 78: (1, 2), 79: (1, 2),
    80: (0, 1), 81: (0, 0), 83: (0, 0), 84: (0, 0), 85: (0, 1), 86: (0, 0), 87: (0, 1),
    88: (0, 0), 89: (0, 0), 90: (0, 1), 91: (0, 0), 92: (0, 0),
}  # fmt: skip

# Kafka serves these only where a plugin receives what clients push.
ONLY_WITH_A_PLUGIN = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}

LIMITS = (
    "TLS is OpenSSL's. The suites of TLS 1.3 cannot be chosen one by one, and versions before 1.2 "
    "are rejected. Properties of a JVM's TLS, such as `ssl.provider`, have no effect.",
    "Client quotas are Kafka's, and a request percentage is that of the one event loop: 100 is all "
    "of it. A fetched batch beyond the burst of its quota is sent when nothing else counts; Kafka "
    "never sends it. A throttled ShareFetch keeps its records, which are locked already.",
    "Partitions cannot be moved: AlterPartitionReassignments and AlterReplicaLogDirs are missing. "
    "Nodes of Kafka in a cluster of Headrace, and the reverse, are not supported yet.",
    "Consumers fetch from leaders only (no KIP-392).",
    "Tiered storage is rejected. Broker configs of Kafka without an effect here are accepted, "
    "stored and described as in Kafka, and logged once. Listeners cannot be changed while the "
    "broker runs.",
    "UnregisterBroker rejects this node itself.",
    "A single node has no eligible leader replicas (ELR), unlike a new Kafka 4.3 cluster. So "
    "`min.insync.replicas` of its broker can be altered here and cannot there.",
    "DescribeConfigs lists names that Kafka 4.3 does not have: `headrace.*` of the broker, and "
    "`errors.deadletterqueue.*` of broker and groups (KIP-1191).",
    "GetTelemetrySubscriptions and PushTelemetry are advertised while a client metrics "
    "subscription exists, or always with `headrace.telemetry.enable=true`. Kafka needs a plug-in "
    "that receives metrics. Older connections see them after a reconnect.",
    "Records of a share group that wait for their dead letter (*archiving*) stay so when Kafka "
    "4.3 opens the directory. It has no dead letters, and does not deliver these records again.",
    "A quota of an IP address names the address. Kafka also accepts the name of a host.",
    "A request that alters the quotas of an entity twice leaves them as they are. Kafka answers "
    "the same error, and applies the first change.",
    "Texts of error messages are our own; codes are Kafka's.",
)

_JAVA = "Kafka's Java consumer and producer"
ENGINES = (
    (
        "Spark",
        '`format("headrace")`, the default here: our own client',
        "spark/test_source_stream.py",
    ),
    ("Spark", f'`format("kafka")`, the stock connector: {_JAVA}', "spark/test_stock_connector.py"),
    ("Kafka Streams", _JAVA, "integration/test_streams_groups.py"),
    ("ksqlDB", "Kafka Streams", None),
    ("Flink", f"its Kafka connector: {_JAVA}", None),
    ("Beam, and Google Dataflow, which runs it", f"KafkaIO: {_JAVA}", None),
    ("Samza", f"its Kafka system: {_JAVA}", None),
    ("Storm", f"storm-kafka-client: {_JAVA}", None),
    ("Databricks, Google Dataproc, Amazon EMR, Azure HDInsight", "Spark's stock connector", None),
    ("Azure Stream Analytics", "a Kafka input and output of its own", None),
)
"""Processing engines, the client of each, and the test that runs it, if any."""

HEAD = """\
# Compatibility

This page lists the APIs that Headrace serves, their limits, and the APIs that are missing.
`make docs` writes it from the broker's table of APIs.

```sh
headrace cluster
```

prints the nodes and the feature levels of a running cluster.

Headrace speaks {served} of the {all} APIs that a Kafka 4.3 broker advertises to clients, each in
the same versions{exceptions}. Only the APIs of the first table are advertised, so clients do not
send others.
"""


def main() -> int:
    """Write the page, or with --check report whether it is current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the page is out of date")
    page = render()
    if parser.parse_args().check:
        return 0 if PAGE.exists() and PAGE.read_text() == page else 1
    PAGE.write_text(page)
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


def render() -> str:
    """Return the page."""
    served = [APIS[key] for key in sorted(APIS)]
    missing = sorted(KAFKA.keys() - APIS.keys())
    both = [row for row in served if int(row.key) in KAFKA]
    narrower = [row for row in both if row.advertised != KAFKA[int(row.key)]]
    exceptions = " but " + ", ".join(name(row.key) for row in narrower) if narrower else ""
    parts = [
        HEAD.format(served=len(both), all=len(KAFKA), exceptions=exceptions),
        "## Served\n",
        table(["key", "API", "versions", "purpose"], [served_row(row) for row in served]),
        "## Limits of what is served\n",
        "\n".join(wrapped(f"- {limit}") for limit in LIMITS) + "\n",
        "## Not yet\n",
        table(["key", "API", "Kafka's versions"], [missing_row(key) for key in missing]),
        "## Processing engines\n",
        "An engine connects with its own client for Kafka. Untried engines should work with the "
        "APIs\nabove.\n",
        table(["engine", "client", "tried here"], [engine_row(*engine) for engine in ENGINES]),
    ]
    return "\n".join(parts)


def wrapped(item: str) -> str:
    return textwrap.fill(item, 100, subsequent_indent="  ", break_on_hyphens=False)


def served_row(entry: Entry) -> list[str]:
    remark = " Kafka serves it only with a plugin." if entry.key in ONLY_WITH_A_PLUGIN else ""
    what = purpose(entry) + remark
    return [str(int(entry.key)), name(entry.key), versions(entry.advertised), what]


def missing_row(key: int) -> list[str]:
    return [str(key), name(ApiKey(key)), versions(KAFKA[key])]


def engine_row(engine: str, client: str, test: str | None) -> list[str]:
    return [engine, client, "not tried" if test is None else f"yes: `tests/{test}`"]


def purpose(entry: Entry) -> str:
    """Return the first sentence of the handler's module, without the API's name and versions."""
    path = HANDLERS / entry.family / f"{entry.key.name.lower()}.py"
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    sentence = docstring.partition("\n\n")[0].replace("\n", " ").partition(": ")[2]
    return sentence[:1].upper() + sentence[1:]


def name(key: ApiKey) -> str:
    """Return an API's name as Kafka writes it."""
    return "".join(word.capitalize() for word in key.name.split("_"))


def versions(bounds: tuple[int, int]) -> str:
    first, last = bounds
    return str(first) if first == last else f"{first}-{last}"


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
