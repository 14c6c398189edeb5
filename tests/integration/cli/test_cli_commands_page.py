"""Runs every command of docs/reference/commands.md in the order of the page."""

import re
import shlex
import subprocess
from pathlib import Path

from tests.integration.cli.commands import run
from tests.integration.conftest import StartNode

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "commands.md"
COMMAND = re.compile(r"(?:`([^`]*)` &#124; )?`(headrace [^`]*)`(?! \(not run)")

DELIVERED = re.compile(r"\d records? delivered to ")
"""The confirmation of `headrace produce`, which goes to standard error."""


def commands() -> list[tuple[str, str]]:
    """The command of every table line that has one, and the input piped into it."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    found = [COMMAND.search(row.split(" | ", 1)[1]) for row in rows]
    return [(one[1] or "", one[2]) for one in found if one is not None]


def test_every_command_of_the_page_works(start_node: StartNode) -> None:
    """OPS-1: what Kafka's tools do every day, our commands do."""
    node = start_node(
        share_coordinator_state_topic_replication_factor=1,
        share_coordinator_state_topic_min_isr=1,
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:ANONYMOUS",
    )
    segment = node.data / "orders-0" / "00000000000000000000.log"
    failures = []
    for feed, command in commands():
        stdin = subprocess.run(feed, shell=True, capture_output=True, check=True).stdout
        words = shlex.split(command.replace("FILE", str(segment)))
        done = run(node.address, *words[1:], stdin=stdin)
        complaints = [line for line in done.err.splitlines() if not DELIVERED.search(line)]
        if done.code or complaints:
            failures.append(f"{command}: {done.code} {done.err}")
    assert failures == []
    assert len(commands()) > 50
