"""Parses Protobuf schemas from .proto source, or from base64 of a file's descriptor.

The text is parsed twice, here for its form and by protoc for its meaning. protoc rejects some texts
that Confluent's registry accepts: written-out map entries, and options without their definition. It
receives the text without these, and the original form is kept.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from google.protobuf.descriptor_pb2 import DESCRIPTOR, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from headrace.serdes.protobuf.aligning import align
from headrace.serdes.protobuf.compiling import MAIN_FILE, TEXT_CHARS_MAX, compile_files
from headrace.serdes.protobuf.elements import File, Import, map_entries
from headrace.serdes.protobuf.known_imports import is_always_there
from headrace.serdes.protobuf.lifting import lift
from headrace.serdes.protobuf.maps import with_map_types
from headrace.serdes.protobuf.names import Names, all_messages, names_of
from headrace.serdes.protobuf.normalizing import normalize
from headrace.serdes.protobuf.printing import print_file, quoted
from headrace.serdes.protobuf.pruning import (
    META,
    uses_meta,
    without_custom_options,
    without_extensions,
)
from headrace.serdes.protobuf.reading import read
from headrace.serdes.schemas import Dependency, InvalidSchema, SchemaType

DESCRIPTOR_FILE = FileDescriptorProto.FromString(DESCRIPTOR.serialized_pb)

BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}")

KEPT_MAX = 1024
KEPT_CHARS_MAX = 1 << 16
"""Longer texts are rare and not worth the memory."""

LACKS_DEFINITIONS = re.compile(
    r"File not found|unknown\. Ensure that your proto definition file|Option .* is resolved to "
)
"""Errors of protoc for missing imports, for options defined in them, and for options hidden by a
package of the same name."""


@dataclass(frozen=True, eq=False)
class ProtobufSchema:
    """A Protobuf schema: its statements, and the descriptors of the file and its imports.

    Equality is identity, which is cheap for a cache key; texts decide whether two schemas are
    equal.
    """

    file: File
    descriptors: bytes
    """A FileDescriptorSet; imports come first, the schema's own file last."""

    @property
    def type(self) -> SchemaType:
        return SchemaType.PROTOBUF

    def canonical(self) -> str:
        return self._canonical

    def normalized(self) -> str:
        return self._normalized

    def meaning(self, *, normalized: bool = False) -> str:
        return self.normalized() if normalized else self.canonical()

    def field_names(self) -> frozenset[str]:
        """Return the field names of top-level messages; members of oneofs do not count."""
        return frozenset(
            field.name
            for message in self.payload_file.message_type
            for field in message.field
            if not field.HasField("oneof_index") or field.proto3_optional
        )

    def formatted(self, format: str) -> str:
        match format:
            case "serialized":
                return base64.b64encode(self.descriptor.SerializeToString()).decode()
            case "ignore_extensions":
                return print_file(without_extensions(self.file))
            case _:
                return self.canonical()

    @cached_property
    def files(self) -> Sequence[FileDescriptorProto]:
        found: Sequence[FileDescriptorProto] = FileDescriptorSet.FromString(self.descriptors).file
        return found

    @property
    def descriptor(self) -> FileDescriptorProto:
        """The schema's own file."""
        return self.files[-1]

    @cached_property
    def payload_file(self) -> FileDescriptorProto:
        """The file of the payloads' messages; differs if the schema only forwards an import."""
        own = self.descriptor
        has_own = own.message_type or own.enum_type or own.service or own.extension
        if has_own or len(own.dependency) != 1 or list(own.public_dependency) != [0]:
            return own
        passed_on = next(file for file in self.files if file.name == own.dependency[0])
        return passed_on if passed_on.message_type or passed_on.enum_type else own

    @cached_property
    def pool(self) -> DescriptorPool:
        """A pool of this schema's files only, so that schemas cannot conflict."""
        return pool_of(self.files)

    @cached_property
    def names(self) -> Names:
        return names_of(self.files)

    @cached_property
    def messages(self) -> dict[str, tuple[int, ...]]:
        """The full names of all messages, with the indexes that lead to each.

        Map entries count only if they are written out as messages, as in Confluent's registry and
        its Java clients.
        """
        file = self.payload_file
        ways: dict[str, tuple[int, ...]] = {}
        places: dict[str, int] = {}
        for name, message in all_messages(file.message_type, file.package):
            if message.options.map_entry and name not in self._written_entries:
                continue
            scope = name.rpartition(".")[0]
            ways[name] = (*ways.get(scope, ()), places.get(scope, 0))
            places[scope] = places.get(scope, 0) + 1
        return ways

    @cached_property
    def _written_entries(self) -> frozenset[str]:
        return frozenset(name for name, _ in map_entries(self.file))

    @cached_property
    def _canonical(self) -> str:
        return print_file(self.file)

    @cached_property
    def _normalized(self) -> str:
        return print_file(normalize(self.file, self.names))


def parse(text: str, dependencies: Sequence[Dependency] = ()) -> ProtobufSchema:
    """Parse a schema; InvalidSchema has the position and the reason."""
    known = tuple(dependencies)
    if len(text) + sum(len(dependency.text) for dependency in known) > KEPT_CHARS_MAX:
        return parse_afresh(text, known)
    return parse_once(text, known)


@lru_cache(KEPT_MAX)
def parse_once(text: str, dependencies: tuple[Dependency, ...]) -> ProtobufSchema:
    return parse_afresh(text, dependencies)


def parse_afresh(text: str, dependencies: tuple[Dependency, ...]) -> ProtobufSchema:
    if len(text) > TEXT_CHARS_MAX:
        raise InvalidSchema(f"the Protobuf schema is longer than {TEXT_CHARS_MAX} characters")
    if not text.strip():
        raise InvalidSchema("the Protobuf schema is empty")
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise InvalidSchema("the Protobuf schema has characters that are not Unicode")
    imports = {
        dependency.name: source_of(dependency, dependencies[:place])
        for place, dependency in enumerate(dependencies)
    }
    if is_serialized(text):
        return from_descriptor(descriptor_in(text), imports)
    return from_text(text, imports)


def is_serialized(text: str) -> bool:
    """A .proto text contains characters that base64 lacks."""
    return BASE64.fullmatch(text.strip()) is not None


def source_of(dependency: Dependency, earlier: tuple[Dependency, ...]) -> str:
    """Return the text of a dependency in a form that protoc accepts."""
    if not is_serialized(dependency.text) and "map_entry" not in dependency.text:
        return dependency.text
    return print_file(with_map_types(parse(dependency.text, earlier).file))


# From .proto text.


def from_text(text: str, imports: dict[str, str]) -> ProtobufSchema:
    try:
        file = read(text)
    except InvalidSchema:
        compile_files(text, imports)  # protoc's message is better.
        raise
    has_entries = any(True for _ in map_entries(file))
    source = print_file(with_map_types(file)) if has_entries else text
    try:
        descriptors = compile_files(source, imports)
    except InvalidSchema as error:
        descriptors = compile_without_definitions(file, imports, error)
    return ProtobufSchema(file, aligned(file, descriptors))


def compile_without_definitions(
    file: File, imports: dict[str, str], refusal: InvalidSchema
) -> bytes:
    """Compile without custom options that have no definition, if only they were rejected.

    Confluent's registry does not look for definitions of options, so schemas come without them and
    without their files. A missing type is an error there too, which protoc reports.
    """
    if not LACKS_DEFINITIONS.search(str(refusal)):
        raise refusal
    try:
        bare_imports = {
            name: bare_source(read(content), imports) for name, content in imports.items()
        }
        return compile_files(bare_source(file, imports), bare_imports)
    except InvalidSchema as error:
        raise InvalidSchema(f"{refusal} Without its custom options: {error}") from error


def bare_source(file: File, imports: dict[str, str]) -> str:
    """Return the text without custom options and missing imports."""
    bare = with_map_types(without_custom_options(file))
    used = [found for found in bare.imports if is_there(found.name, imports)]
    if uses_meta(bare) and META not in (found.name for found in used):
        used.append(Import(META))
    return print_file(replace(bare, imports=tuple(used)))


def is_there(name: str, imports: dict[str, str]) -> bool:
    return name in imports or is_always_there(name)


def aligned(file: File, descriptors: bytes) -> bytes:
    files = FileDescriptorSet.FromString(descriptors)
    align(file, files.file[-1])
    made: bytes = files.SerializeToString()
    return made


# From descriptors.


def descriptor_in(text: str) -> FileDescriptorProto:
    try:
        return FileDescriptorProto.FromString(base64.b64decode(text))
    except (binascii.Error, DecodeError) as error:
        raise InvalidSchema(
            "the Protobuf schema is neither .proto text nor base64 of a FileDescriptorProto: "
            f"{error}"
        ) from error


def from_descriptor(file: FileDescriptorProto, imports: dict[str, str]) -> ProtobufSchema:
    """Build the schema of a client's descriptor; only its imports need protoc."""
    missing = [name for name in file.dependency if not is_there(name, imports)]
    if missing:
        raise InvalidSchema(f"{missing[0]}: File not found; name it among the references")
    files = list(imported_files(file.dependency, imports))
    file.name = MAIN_FILE
    files.append(file)
    pool = pool_of(files)
    try:
        lifted = lift(file, pool)
        descriptors: bytes = FileDescriptorSet(file=files).SerializeToString()
    except (DecodeError, UnicodeError, ValueError) as error:
        raise InvalidSchema(f"the descriptor of the Protobuf schema is damaged: {error}") from error
    return ProtobufSchema(lifted, descriptors)


def imported_files(names: Sequence[str], imports: dict[str, str]) -> Iterator[FileDescriptorProto]:
    if names:
        lines = "".join(f"import {quoted(name)};\n" for name in names)
        compiled = compile_files(f'syntax = "proto3";\n{lines}', imports)
        yield from list(FileDescriptorSet.FromString(compiled).file)[:-1]


def pool_of(files: Sequence[FileDescriptorProto]) -> DescriptorPool:
    """Return a pool of these files and of Protobuf's own descriptors, which decode options."""
    pool = DescriptorPool()
    names = {file.name for file in files}
    try:
        if DESCRIPTOR_FILE.name not in names:
            pool.Add(DESCRIPTOR_FILE)
        for file in files:
            pool.Add(file)
    except TypeError as error:
        raise InvalidSchema(f"the Protobuf descriptors do not fit together: {error}") from error
    return pool
