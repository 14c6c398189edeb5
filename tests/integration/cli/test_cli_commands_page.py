"""The commands of docs/commands.md, all of them, one after the other as they stand there."""

import re
import shlex
import subprocess
from pathlib import Path

from tests.integration.cli.commands import run
from tests.integration.conftest import StartNode

PAGE = Path(__file__).resolve().parents[3] / "docs" / "commands.md"
COMMAND = re.compile(r"(?:`([^`]*)` &#124; )?`(headrace [^`]*)`(?! \(not run)")


def commands() -> list[tuple[str, str]]:
    """What feeds a command, and the command, of every line that has one."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    found = [COMMAND.search(row.split(" | ", 1)[1]) for row in rows]
    return [(one[1] or "", one[2]) for one in found if one is not None]


def test_every_command_of_the_page_works(start_node: StartNode) -> None:
    """OPS-1: what Kafka's tools do every day, our commands do."""
    node = start_node(
        share_coordinator_state_topic_replication_factor=1,
        share_coordinator_state_topic_min_isr=1,
    )
    segment = node.data / "orders-0" / "00000000000000000000.log"
    failures = []
    for feed, command in commands():
        stdin = subprocess.run(feed, shell=True, capture_output=True, check=True).stdout
        words = shlex.split(command.replace("FILE", str(segment)))
        done = run(node.address, *words[1:], stdin=stdin)
        if done.code or done.err:
            failures.append(f"{command}: {done.code} {done.err}")
    assert failures == []
    assert len(commands()) > 50
