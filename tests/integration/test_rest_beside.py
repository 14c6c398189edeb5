"""A REST proxy beside a node and its registry, all by one command."""

import json
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.processes.nodes import eventually, free_port

AVRO_V2 = "application/vnd.kafka.avro.v2+json"


@pytest.mark.usefixtures("only_headrace")
def test_one_command_starts_a_connected_node_registry_and_proxy(
    tmp_path: Path,
) -> None:
    """RST-7"""
    registry, rest = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "headrace.cli.main", "up", "--data", str(tmp_path / "data")]
    command += ["--listen", f"127.0.0.1:{free_port()}", "--registry", registry, "--rest", rest]
    log = tmp_path / "up.log"
    with log.open("wb") as file:
        node = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        ready = (f"registry is ready on http://{registry}", f"proxy is ready on http://{rest}")
        eventually(lambda: all(line in log.read_text() for line in ready), seconds=60)
        body = {"value_schema": '"int"', "records": [{"value": 7}]}
        answer = httpx2.post(
            f"http://{rest}/topics/orders",
            content=json.dumps(body),
            headers={"Content-Type": AVRO_V2},
            timeout=60,
        )
        assert answer.json()["value_schema_id"] == 1, answer.text
        assert httpx2.get(f"http://{registry}/subjects", timeout=60).json() == ["orders-value"]
    finally:
        node.terminate()
        code = node.wait(60)
    assert code == 0
    assert "Traceback" not in log.read_text()
