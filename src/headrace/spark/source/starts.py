"""The start of a stream in a file next to its checkpoint, because Spark does not store it.

Without it a crash in the first batch would resolve `latest` again and read another range. The ids
of topics are stored too, to detect recreated topics.
"""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlparse

from headrace.protocol.uuids import Uuid, from_text, to_text
from headrace.spark.source.errors import InvalidOption, SourceError
from headrace.spark.source.offsets import Positions, from_spark, to_spark

FILE = "starts.json"

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Starts:
    """The first offset of each partition, and the topics' ids."""

    positions: Positions
    topic_ids: Mapping[str, Uuid] = field(default_factory=dict)
    remade: frozenset[str] = frozenset()
    """Topics that were recreated since."""


def starts_path(location: str) -> Path:
    """Return the path of the file, in a local or mounted directory."""
    parsed = urlparse(location)
    if parsed.scheme not in ("", "file") or parsed.netloc not in ("", "localhost"):
        raise InvalidOption(
            f"startsLocation is {location!r}; it must be a directory that the driver can write to,"
            " such as the one above the checkpoint"
        )
    return Path(unquote(parsed.path) if parsed.scheme else location) / FILE


def load(path: Path) -> Starts | None:
    """Load the file; None if it does not exist."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SourceError(f"{path} cannot be read: {error}; restore it from a backup") from error
    try:
        if kept["version"] != _VERSION:
            raise ValueError(f"unknown version {kept['version']}")
        ids = {topic: from_text(text) for topic, text in kept["topicIds"].items()}
        return Starts(from_spark(kept["offsets"]), ids, frozenset(kept.get("remade", ())))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SourceError(f"{path} is damaged ({error!r}); restore it from a backup") from error


def save(path: Path, starts: Starts) -> None:
    """Replace the file atomically."""
    content = {
        "version": _VERSION,
        "offsets": to_spark(starts.positions),
        "topicIds": {topic: to_text(starts.topic_ids[topic]) for topic in sorted(starts.topic_ids)},
    }
    if starts.remade:
        content["remade"] = sorted(starts.remade)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise SourceError(f"{path} cannot be written: {error}") from error
