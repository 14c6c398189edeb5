"""Compatibility of Avro schemas by the rules of Java's checker.

The verdicts are those of `SchemaCompatibility` in Java's Avro, the descriptions those of
Confluent's registry. Like Java, it compares names of types without their namespaces unless
`full_names` is set: most readers of Avro ignore namespaces too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headrace.registry.compatibility.incompatibilities import (
    Direction,
    Incompatibility,
    TooComplex,
    described,
)
from headrace.serdes.avro.model import (
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Node,
    Primitive,
    Record,
    Union,
    can_read,
)
from headrace.serdes.avro.schema import AvroSchema

DESCRIPTIONS: Final = {
    "FIXED_SIZE_MISMATCH": (
        "The size of FIXED type field at path '{path}' in the {reader} schema does not match "
        "with the {writer} schema"
    ),
    "TYPE_MISMATCH": (
        "The type (path '{path}') of a field in the {reader} schema does not match with the "
        "{writer} schema"
    ),
    "NAME_MISMATCH": "The name of the schema has changed (path '{path}')",
    "MISSING_ENUM_SYMBOLS": (
        "The {reader} schema is missing enum symbols '{detail}' at path '{path}' in the "
        "{writer} schema"
    ),
    "MISSING_UNION_BRANCH": (
        "The {reader} schema is missing a type inside a union field at path '{path}' in the "
        "{writer} schema"
    ),
    "READER_FIELD_MISSING_DEFAULT_VALUE": (
        "The field '{detail}' at path '{path}' in the {reader} schema has no default value and "
        "is missing in the {writer} schema"
    ),
}

PAIRS_MAX = 100_000
"""Pairs of types that one comparison looks at, less than a second of work. Unions of types that
differ only in their namespaces grow with the square, and a registry must answer."""

DIFFERENCES_MAX = 1_000
"""Differences kept for one pair of types: a type that many fields use counts for each use."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A place in which a reader cannot follow a writer."""

    error: str
    path: Path
    detail: str


class AmbiguousField(Exception):
    """A reader's field whose aliases name several fields of the writer."""


def incompatibilities(
    reader: AvroSchema,
    writer: AvroSchema,
    direction: Direction = Direction.BACKWARD,
    *,
    full_names: bool = False,
) -> list[Incompatibility]:
    """Return why data of `writer` cannot be read with `reader`; nothing if it can be read."""
    try:
        found = differences(reader.root, writer.root, full_names=full_names)
    except AmbiguousField as error:
        text = f"Unexpected exception during compatibility check: {error}"
        return [Incompatibility("", text, direction)]
    except TooComplex as error:
        return [error.incompatibility(direction)]
    return [
        described(one.error, DESCRIPTIONS, f"/{'/'.join(one.path)}", direction, one.detail)
        for one in found
    ]


def differences(reader: Node, writer: Node, *, full_names: bool = False) -> list[Difference]:
    return _Comparison(full_names).compare(reader, writer, ())


class _Comparison:
    def __init__(self, full_names: bool) -> None:
        self._full_names = full_names
        self._results: dict[tuple[int, int], list[Difference]] = {}
        """By pair of nodes. A pair inside itself (a recursive type) counts as compatible."""
        self._choices: dict[int, _Choices] = {}
        """Of unions, by identity."""

    def compare(self, reader: Node, writer: Node, path: Path) -> list[Difference]:
        pair = (id(reader), id(writer))
        if pair not in self._results:
            if len(self._results) >= PAIRS_MAX:
                raise TooComplex(
                    f"The schemas were not compared to the end: more than {PAIRS_MAX} pairs of"
                    " their types would have to be. Make their unions shorter"
                )
            self._results[pair] = []
            self._results[pair] = self._compare(reader, writer, path)[:DIFFERENCES_MAX]
        return self._results[pair]

    def _compare(self, reader: Node, writer: Node, path: Path) -> list[Difference]:
        match reader, writer:
            case Union(), Union():
                return self._unions(reader, writer, path)
            case _, Union():
                return self._written_branches(reader, writer, path)
            case Union(), _:
                return self._branch(reader, writer, path)
            case Primitive(), Primitive():
                if can_read(writer.kind, reader.kind):
                    return []
            case Array(), Array():
                return self.compare(reader.items, writer.items, (*path, "items"))
            case Map(), Map():
                return self.compare(reader.values, writer.values, (*path, "values"))
            case Fixed(), Fixed():
                return self._names(reader, writer, path) + _sizes(reader, writer, path)
            case Enum(), Enum():
                return self._names(reader, writer, path) + _symbols(reader, writer, path)
            case Record(), Record():
                return self._names(reader, writer, path) + self._fields(reader, writer, path)
        detail = f"reader type: {_kind(reader)} not compatible with writer type: {_kind(writer)}"
        return [Difference("TYPE_MISMATCH", path, detail)]

    def _unions(self, reader: Union, writer: Union, path: Path) -> list[Difference]:
        found = []
        for position, branch in enumerate(writer.branches):
            if self.compare(reader, branch, ()):
                found.append(_missing_branch(branch, (*path, str(position))))
        return found

    def _branch(self, reader: Union, writer: Node, path: Path) -> list[Difference]:
        choices = self._choices.get(id(reader))
        if choices is None:
            choices = self._choices[id(reader)] = _Choices(reader)
        if any(not self.compare(branch, writer, ()) for branch in choices.of(writer)):
            return []
        return [_missing_branch(writer, path)]

    def _written_branches(self, reader: Node, writer: Union, path: Path) -> list[Difference]:
        found: list[Difference] = []
        for position, branch in enumerate(writer.branches):
            found += self.compare(reader, branch, (*path, str(position)))
            if len(found) >= DIFFERENCES_MAX:
                break
        return found

    def _fields(self, reader: Record, writer: Record, path: Path) -> list[Difference]:
        found: list[Difference] = []
        written = {field.name: field for field in writer.fields}
        for position, field in enumerate(reader.fields):
            if len(found) >= DIFFERENCES_MAX:
                break
            here = (*path, "fields", str(position))
            source = _written_field(field, written, writer)
            if source is not None:
                found += self.compare(field.type, source.type, (*here, "type"))
            elif not field.has_default:
                found += self._missing(field, writer, here)
        return found

    def _missing(self, field: Field, writer: Record, path: Path) -> list[Difference]:
        if isinstance(field.type, Enum) and field.type.default is not None:
            # Java continues by comparing the enum with the whole record, which cannot end well.
            return self.compare(field.type, writer, (*path, "type"))
        return [Difference("READER_FIELD_MISSING_DEFAULT_VALUE", path, field.name)]

    def _names(self, reader: Named, writer: Named, path: Path) -> list[Difference]:
        if self._full_names:
            is_same = reader.name == writer.name
        else:
            is_same = reader.name.simple == writer.name.simple
        if is_same or writer.name in reader.aliases:
            return []
        return [Difference("NAME_MISMATCH", (*path, "name"), f"expected: {writer.name.full}")]


class _Choices:
    """The branches of a reader's union that may read a written type.

    Types of different names never match, so most of a long union need not be compared.
    """

    def __init__(self, union: Union) -> None:
        self._unnamed: list[Node] = []
        self._named: dict[str, list[Named]] = {}
        """By simple name, the type's own and those of its aliases."""
        for branch in union.branches:
            if isinstance(branch, Named):
                for name in {branch.name.simple, *(alias.simple for alias in branch.aliases)}:
                    self._named.setdefault(name, []).append(branch)
            else:
                self._unnamed.append(branch)

    def of(self, writer: Node) -> Iterator[Node]:
        """Yield the branches; the one with the same full name comes first."""
        if not isinstance(writer, Named):
            yield from self._unnamed
            return
        found = self._named.get(writer.name.simple, [])
        yield from (branch for branch in found if branch.name == writer.name)
        yield from (branch for branch in found if branch.name != writer.name)


def _written_field(field: Field, written: dict[str, Field], writer: Record) -> Field | None:
    """Return the writer's field for a reader's field, by its name or by an alias."""
    found = [written[name] for name in (field.name, *field.aliases) if name in written]
    if len(found) > 1:
        raise AmbiguousField(
            f"Reader record field {field.name} matches multiple fields in writer record schema"
            f" {writer.name.full}"
        )
    return found[0] if found else None


def _sizes(reader: Fixed, writer: Fixed, path: Path) -> list[Difference]:
    if reader.size == writer.size:
        return []
    detail = f"expected: {writer.size}, found: {reader.size}"
    return [Difference("FIXED_SIZE_MISMATCH", (*path, "size"), detail)]


def _symbols(reader: Enum, writer: Enum, path: Path) -> list[Difference]:
    missing = sorted(set(writer.symbols) - set(reader.symbols))
    if not missing or reader.default is not None:
        return []
    return [Difference("MISSING_ENUM_SYMBOLS", (*path, "symbols"), f"[{', '.join(missing)}]")]


def _missing_branch(writer: Node, path: Path) -> Difference:
    detail = f"reader union lacking writer type: {_kind(writer)}"
    return Difference("MISSING_UNION_BRANCH", path, detail)


def _kind(node: Node) -> str:
    return node.kind.upper()
