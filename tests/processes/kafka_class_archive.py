"""Kafka's classes as a JVM has them in memory, kept for the next start: half of what one costs."""

from pathlib import Path

from tests.processes.kafka import KafkaRelease, only_one
from tests.processes.nodes import SOON, Kafka, Node


def keep_classes(release: KafkaRelease, directory: Path) -> None:
    """Let a Kafka that runs for a moment write them when it ends, unless they are there."""
    kept = release.classes
    with only_one(kept.with_name(f"{kept.name}.lock")):
        if kept.exists():
            return
        made = kept.with_suffix(".partial")
        node = Node(Kafka((*SOON, f"-XX:ArchiveClassesAtExit={made}")), directory, {})
        node.start()
        node.stop()
        made.replace(kept)
