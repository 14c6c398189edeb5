"""One node of a cluster of combined nodes on this machine, in the foreground.

    python -m benchmarks.cluster_node DIR ID COUNT PORT

The clients' port of node ID is PORT+ID, that of its controller PORT+100+ID. The directory is
formatted when it is new, so the same command starts the node again. Failover benchmarks start the
nodes of `headrace3.toml` with it.
"""

import os
import subprocess
import sys
from pathlib import Path

from headrace.protocol.uuids import from_text, to_text

_CLUSTER_ID = "HeadraceBenchmarks0001"
_HOST = "127.0.0.1"


def directory_id(node_id: int) -> str:
    """Return an id for the metadata directory of a node that all nodes can compute."""
    return to_text(from_text(f"Benchmark{node_id:03}AAAAAAAAAA"))


def properties(directory: Path, node_id: int, count: int, port: int) -> dict[str, str]:
    replicas = str(min(count, 3))
    min_isr = str(min(count, 2))
    controllers = ",".join(f"{_HOST}:{port + 100 + one}" for one in range(1, count + 1))
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "controller.quorum.bootstrap.servers": controllers,
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": (
            f"PLAINTEXT://{_HOST}:{port + node_id},CONTROLLER://{_HOST}:{port + 100 + node_id}"
        ),
        "log.dirs": str(directory / "data"),
        "default.replication.factor": replicas,
        "min.insync.replicas": min_isr,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": min_isr,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": min_isr,
        "log.segment.delete.delay.ms": "1000",
    }


def main(arguments: list[str]) -> None:
    base, node_id, count, port = arguments[0], *map(int, arguments[1:4])
    directory = Path(base) / str(node_id)
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "node.properties"
    lines = [f"{name}={text}" for name, text in properties(directory, node_id, count, port).items()]
    config.write_text("\n".join(lines) + "\n")
    voters = ",".join(
        f"{one}@{_HOST}:{port + 100 + one}:{directory_id(one)}" for one in range(1, count + 1)
    )
    headrace = [sys.executable, "-m", "headrace.cli.main"]
    subprocess.run(
        [
            *(*headrace, "format", "--config", str(config), "--cluster-id", _CLUSTER_ID),
            *("--initial-controllers", voters, "--ignore-formatted"),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    command = [*headrace, "up", "--config", str(config), *arguments[4:]]
    os.execv(sys.executable, command)  # The node takes over this process.


if __name__ == "__main__":
    main(sys.argv[1:])
