"""Compare two Protobuf schemas, message by message and field by field.

Fields are identified by number, messages by name within the file. Moving a field into or out of a
oneof does not hide a change of the field itself. Types of other files are compared too, because
these files have versions of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from google.protobuf.descriptor_pb2 import EnumDescriptorProto, FieldDescriptorProto

from headrace.registry.compatibility.incompatibilities import (
    Direction,
    Incompatibility,
    TooComplex,
    described,
)
from headrace.registry.compatibility.protobuf.differences import DESCRIPTIONS, Difference, Kind
from headrace.registry.compatibility.protobuf.types import (
    SCALAR_KINDS,
    Fields,
    Label,
    MessageInfo,
    ScalarKind,
    Shape,
    Types,
    constants_of,
    fields_of,
    is_group,
    label_of,
    types_of,
)
from headrace.serdes.protobuf.parsing import ProtobufSchema

Path: TypeAlias = tuple[str, ...]

DEPTH_MAX = 50

PAIRS_MAX = 100_000
"""The maximum of compared messages, fields and constants, about a second of work: a schema has at
most a megabyte, but it may refer to many others."""

DIFFERENCES_MAX = 1_000
"""The maximum of reported differences."""


def incompatibilities(
    reader: ProtobufSchema, writer: ProtobufSchema, direction: Direction = Direction.BACKWARD
) -> list[Incompatibility]:
    """Return why data of `writer` cannot be read with `reader`; nothing if it can be read."""
    try:
        every = differences(reader, writer)
    except TooComplex as error:
        return [error.incompatibility(direction)]
    broken = [found for found in every if not found.is_compatible][:DIFFERENCES_MAX]
    return [described(found.kind, DESCRIPTIONS, found.path, direction) for found in broken]


def differences(reader: ProtobufSchema, writer: ProtobufSchema) -> list[Difference]:
    """Return the changes from the writer's schema to the reader's."""
    comparison = Comparison(types_of(writer.files), types_of(reader.files))
    old, new = writer.descriptor, reader.descriptor
    if old.package != new.package:
        comparison.note(Kind.PACKAGE_CHANGED, ())
    comparison.messages(comparison.old_types.of_file(old), comparison.new_types.of_file(new), ())
    comparison.enums(old.enum_type, new.enum_type, ())
    comparison.finish()
    return comparison.found


@dataclass(slots=True)
class Comparison:
    """Walks over two schemas and collects differences; "old" is the writer's."""

    old_types: Types
    new_types: Types
    found: list[Difference] = field(default_factory=list)
    _is_compatible: dict[tuple[str, str], bool] = field(default_factory=dict)
    """Results for referenced messages of other files, each compared once."""

    _left: int = field(default_factory=lambda: PAIRS_MAX)
    _depth: int = 0
    _put_off: dict[tuple[str, str], tuple[MessageInfo, MessageInfo]] = field(default_factory=dict)
    """Messages at the end of a long chain of references, compared after all others."""

    def note(self, kind: Kind, path: Path) -> None:
        self.found.append(Difference(kind, f"#/{'/'.join(path)}"))

    def count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TooComplex(
                f"The schemas were not compared to the end: more than {PAIRS_MAX} messages, fields "
                "and constants would have to be. Cut the schema, or what it refers to, into several"
            )

    def finish(self) -> None:
        while self._put_off:
            self.is_compatible(*self._put_off.popitem()[1])

    # Messages and enums by name.

    def messages(self, old: list[MessageInfo], new: list[MessageInfo], path: Path) -> None:
        old_places = {info.name: place for place, info in enumerate(old)}
        new_places = {info.name: place for place, info in enumerate(new)}
        for name in old_places | new_places:
            self.count()
            here = (*path, name)
            if name not in new_places:
                self.note(Kind.MESSAGE_REMOVED, here)
            elif name not in old_places:
                self.note(Kind.MESSAGE_ADDED, here)
            else:
                self.message(old[old_places[name]], new[new_places[name]], here)
                if old_places[name] != new_places[name]:
                    self.note(Kind.MESSAGE_MOVED, here)

    def enums(
        self, old: Sequence[EnumDescriptorProto], new: Sequence[EnumDescriptorProto], path: Path
    ) -> None:
        old_enums = {enum.name: constants_of(enum) for enum in old}
        new_enums = {enum.name: constants_of(enum) for enum in new}
        for name in old_enums | new_enums:
            here = (*path, name)
            if name not in new_enums:
                self.note(Kind.ENUM_REMOVED, here)
            elif name not in old_enums:
                self.note(Kind.ENUM_ADDED, here)
            else:
                self.constants(old_enums[name], new_enums[name], here)

    def constants(self, old: dict[int, str], new: dict[int, str], path: Path) -> None:
        for number in sorted(old | new):
            self.count()
            here = (*path, str(number))
            if number not in new:
                self.note(Kind.ENUM_CONST_REMOVED, here)
            elif number not in old:
                self.note(Kind.ENUM_CONST_ADDED, here)
            elif old[number] != new[number]:
                self.note(Kind.ENUM_CONST_CHANGED, here)

    # One message.

    def message(self, old: MessageInfo, new: MessageInfo, path: Path) -> None:
        old_fields, new_fields = fields_of(old.descriptor), fields_of(new.descriptor)
        self.exclusions(old_fields, new_fields, path)
        for name in sorted(old_fields.oneofs | new_fields.oneofs):
            if name not in new_fields.oneofs:
                self.note(Kind.ONEOF_REMOVED, (*path, name))
            elif name not in old_fields.oneofs:
                self.note(Kind.ONEOF_ADDED, (*path, name))
        for number in sorted(old_fields.by_number | new_fields.by_number):
            self.count()
            if number not in new_fields.by_number:
                self.removed(number, old, old_fields, new_fields, path)
            elif number not in old_fields.by_number:
                self.added(number, new, new_fields, path)
            else:
                self.kept(number, (old, old_fields), (new, new_fields), path)
        self.messages(self.old_types.nested(old), self.new_types.nested(new), path)
        self.enums(old.descriptor.enum_type, new.descriptor.enum_type, path)

    def exclusions(self, old: Fields, new: Fields, path: Path) -> None:
        """Find fields that could be set together and now exclude each other.

        Old payloads may have both set, but a oneof keeps only the last.
        """
        for name, members in new.oneofs.items():
            known = [number for number in members if number in old.by_number]
            free = [number for number in known if number not in old.oneof_of]
            oneofs = {old.oneof_of[number] for number in known if number in old.oneof_of}
            if len(free) + len(oneofs) <= 1:
                continue
            is_one = len(free) <= 1
            self.note(
                Kind.FIELD_MOVED_TO_EXISTING_ONEOF
                if is_one
                else Kind.MULTIPLE_FIELDS_MOVED_TO_ONEOF,
                (*path, name),
            )

    def removed(
        self, number: int, old: MessageInfo, fields: Fields, new: Fields, path: Path
    ) -> None:
        """Report removed members of oneofs, unless the whole oneof is removed."""
        oneof = fields.oneof_of.get(number)
        if oneof is None:
            label = label_of(fields.by_number[number], old.syntax)
            is_required = label is Label.REQUIRED
            kind = Kind.REQUIRED_FIELD_REMOVED if is_required else Kind.FIELD_REMOVED
            self.note(kind, (*path, str(number)))
        elif oneof in new.oneofs or any(member in new.by_number for member in fields.oneofs[oneof]):
            self.note(Kind.ONEOF_FIELD_REMOVED, (*path, oneof, str(number)))

    def added(self, number: int, new: MessageInfo, fields: Fields, path: Path) -> None:
        oneof = fields.oneof_of.get(number)
        if oneof is not None:
            self.note(Kind.ONEOF_FIELD_ADDED, (*path, oneof, str(number)))
            return
        is_required = label_of(fields.by_number[number], new.syntax) is Label.REQUIRED
        kind = Kind.REQUIRED_FIELD_ADDED if is_required else Kind.FIELD_ADDED
        self.note(kind, (*path, str(number)))

    def kept(
        self,
        number: int,
        old: tuple[MessageInfo, Fields],
        new: tuple[MessageInfo, Fields],
        path: Path,
    ) -> None:
        oneof = new[1].oneof_of.get(number)
        here = (*path, str(number)) if oneof is None else (*path, oneof, str(number))
        if oneof is None and number in old[1].oneof_of:
            self.note(Kind.ONEOF_FIELD_MOVED_TO_TOP_LEVEL, here)
        old_field, new_field = old[1].by_number[number], new[1].by_number[number]
        if old_field.name != new_field.name:
            self.note(Kind.FIELD_NAME_CHANGED, here)
        labels = label_of(old_field, old[0].syntax), label_of(new_field, new[0].syntax)
        self.types(old_field, new_field, labels, here)

    # The type of a field.

    def types(
        self,
        old: FieldDescriptorProto,
        new: FieldDescriptorProto,
        labels: tuple[Label | None, Label | None],
        path: Path,
    ) -> None:
        shape = self.old_types.shape(old)
        if shape is not self.new_types.shape(new) or is_group(old) != is_group(new):
            self.note(Kind.FIELD_KIND_CHANGED, path)
        elif shape is Shape.SCALAR:
            self.scalars(old, new, labels, path)
        elif shape is Shape.MESSAGE:
            self.named_types(self.old_types.named(old), self.new_types.named(new), path)
        else:
            old_parts = fields_of(self.old_types.named(old).descriptor).by_number
            new_parts = fields_of(self.new_types.named(new).descriptor).by_number
            for part in sorted(old_parts.keys() & new_parts.keys()):
                self.types(old_parts[part], new_parts[part], (None, None), path)

    def scalars(
        self,
        old: FieldDescriptorProto,
        new: FieldDescriptorProto,
        labels: tuple[Label | None, Label | None],
        path: Path,
    ) -> None:
        """Compare labels; an implicit label equals any other."""
        kind = SCALAR_KINDS[old.type]
        if kind is not SCALAR_KINDS[new.type]:
            self.note(Kind.FIELD_SCALAR_KIND_CHANGED, path)
        elif None not in labels and labels[0] is not labels[1]:
            is_text = kind is ScalarKind.STRING_OR_BYTES
            self.note(
                Kind.FIELD_STRING_OR_BYTES_LABEL_CHANGED
                if is_text
                else Kind.FIELD_NUMERIC_LABEL_CHANGED,
                path,
            )

    def named_types(self, old: MessageInfo, new: MessageInfo, path: Path) -> None:
        """Compare named types without package; the schema's own messages are compared apart."""
        is_same = old.local_name == new.local_name
        if is_same and not (old.is_own and new.is_own):
            is_same = self.is_compatible(old, new)
        if not is_same:
            self.note(Kind.FIELD_NAMED_TYPE_CHANGED, path)

    def is_compatible(self, old: MessageInfo, new: MessageInfo) -> bool:
        key = (old.full_name, new.full_name)
        if key not in self._is_compatible:
            if self._depth > DEPTH_MAX:
                self._put_off[key] = (old, new)
                return True
            self._is_compatible[key] = True  # For recursive messages.
            before = len(self.found)
            self._depth += 1
            self.message(old, new, tuple(old.local_name.split(".")))
            self._depth -= 1
            self._is_compatible[key] = all(found.is_compatible for found in self.found[before:])
        return self._is_compatible[key]
