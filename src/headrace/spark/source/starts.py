"""Where a stream began, kept beside its checkpoint: Spark itself does not store that.

Without it a crash in the first batch would resolve `latest` anew, and read another range. The ids
of topics are kept too: offsets of a topic that was deleted and made again mean other records.
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
    """The first offset of each partition that there was, and the topics' ids."""

    positions: Positions
    topic_ids: Mapping[str, Uuid] = field(default_factory=dict)
    remade: frozenset[str] = frozenset()
    """Topics that were deleted and made again since: what was read of them before is gone."""


def starts_path(location: str) -> Path:
    """The file in a directory of this machine, or of a file system that is mounted on it."""
    parsed = urlparse(location)
    if parsed.scheme not in ("", "file") or parsed.netloc not in ("", "localhost"):
        raise InvalidOption(
            f"startsLocation is {location!r}; it must be a directory that the driver can write to,"
            " such as the one above the checkpoint"
        )
    return Path(unquote(parsed.path) if parsed.scheme else location) / FILE


def load(path: Path) -> Starts | None:
    """What was kept; None if nothing was."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SourceError(f"{path} cannot be read: {error}; restore it from a backup") from error
    try:
        if kept["version"] != _VERSION:
            raise ValueError(f"version {kept['version']} is not known")
        ids = {topic: from_text(text) for topic, text in kept["topicIds"].items()}
        return Starts(from_spark(kept["offsets"]), ids, frozenset(kept.get("remade", ())))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SourceError(f"{path} is damaged ({error!r}); restore it from a backup") from error


def save(path: Path, starts: Starts) -> None:
    """All or nothing: a crash leaves the file as it was, or as it shall be."""
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
