"""Files that a schema may import without providing them, as in Confluent's registry.

Files of google/protobuf are installed with protoc. Others are passed as texts: this package may be
in a zip, as on Spark's workers, and google/type contains other files too.
"""

import sys
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path

CONFLUENT = "confluent"
GOOGLE_PROTOBUF = "google/protobuf"
GOOGLE_TYPES = "google/type"


def is_always_there(name: str) -> bool:
    """Return whether a file can be imported by this name."""
    return name in protobuf_files() or name in confluent_files() or name in google_types()


def mentioned_files(texts: list[str]) -> dict[str, str]:
    """Return files that texts may import, except google/protobuf."""
    found: dict[str, str] = {}
    if any(f"{CONFLUENT}/" in text for text in texts):
        found |= confluent_files()
    if any(f"{GOOGLE_TYPES}/" in text for text in texts):
        found |= google_types()
    return found


def bundled_roots() -> list[Path]:
    """Return the root of google/protobuf/timestamp.proto and others, if protoc does not
    find them."""
    beside = Path(sys.executable).parent.parent / "include"
    return [beside] if (beside / "google" / "protobuf").is_dir() else []


@cache
def protobuf_files() -> frozenset[str]:
    folders = [root / GOOGLE_PROTOBUF for root in bundled_roots()]
    return frozenset(name for folder in folders for name, _ in proto_files(folder, GOOGLE_PROTOBUF))


@cache
def confluent_files() -> dict[str, str]:
    root = files("headrace.serdes.protobuf") / "imports" / CONFLUENT
    return {name: path.read_text("utf-8") for name, path in proto_files(root, CONFLUENT)}


@cache
def google_types() -> dict[str, str]:
    spec = find_spec("google.type")
    places = (spec and spec.submodule_search_locations) or ()
    return {
        name: path.read_text("utf-8")
        for place in places
        for name, path in proto_files(Path(place), GOOGLE_TYPES)
    }


def proto_files(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    for path in folder.iterdir():
        if path.name.endswith(".proto"):
            yield f"{name}/{path.name}", path
        elif path.is_dir():
            yield from proto_files(path, f"{name}/{path.name}")
