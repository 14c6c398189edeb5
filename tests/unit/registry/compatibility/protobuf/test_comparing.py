"""Protobuf's compatibility against a table of known cases, each with the source of its verdict.

"Confluent" names a difference of its registry and whether that registry counts it as compatible;
"guide" is the section "Updating A Message Type" of Protobuf's own language guide.
"""

from dataclasses import dataclass

import pytest

from headrace.registry.compatibility.protobuf import comparing
from headrace.registry.compatibility.protobuf.comparing import differences, incompatibilities
from headrace.serdes.protobuf.parsing import ProtobufSchema, parse
from headrace.serdes.schemas import Dependency


@dataclass(frozen=True)
class Case:
    name: str
    old: str
    new: str
    found: tuple[str, ...]
    """The differences; those that break readers have an exclamation mark."""

    source: str
    head: str = 'syntax = "proto3"; '


PROTO2 = 'syntax = "proto2"; '

CASES = [
    Case("nothing", "message A { int32 x = 1; }", "message A { int32 x = 1; }", (), "trivial"),
    Case(
        "another package",
        "package a; message A {}",
        "package b; message A {}",
        ("!PACKAGE_CHANGED #/",),
        "Confluent: PACKAGE_CHANGED breaks",
    ),
    Case(
        "a name written in full",
        "message A { B b = 1; message B {} }",
        "message A { .A.B b = 1; message B {} }",
        (),
        "Confluent resolves names before it compares types",
    ),
    Case(
        "a field more",
        "message A { int32 x = 1; }",
        "message A { int32 x = 1; int32 y = 2; }",
        ("FIELD_ADDED #/A/2",),
        "guide: old messages are read by new code, with defaults for new fields",
    ),
    Case(
        "a field less",
        "message A { int32 x = 1; int32 y = 2; }",
        "message A { int32 x = 1; }",
        ("FIELD_REMOVED #/A/2",),
        "guide: fields may go, as long as their numbers are not used again",
    ),
    Case(
        "another number",
        "message A { int32 x = 1; }",
        "message A { int32 x = 2; }",
        ("FIELD_REMOVED #/A/1", "FIELD_ADDED #/A/2"),
        "Confluent: a new number is one field less and one more",
    ),
    Case(
        "another name",
        "message A { int32 x = 1; }",
        "message A { int32 z = 1; }",
        ("FIELD_NAME_CHANGED #/A/1",),
        "guide: bytes know fields by number alone",
    ),
    Case(
        "a required field more",
        "message A { optional int32 x = 1; }",
        "message A { optional int32 x = 1; required int32 y = 2; }",
        ("!REQUIRED_FIELD_ADDED #/A/2",),
        "Confluent: REQUIRED_FIELD_ADDED breaks",
        PROTO2,
    ),
    Case(
        "a required field less",
        "message A { optional int32 x = 1; required int32 y = 2; }",
        "message A { optional int32 x = 1; }",
        ("!REQUIRED_FIELD_REMOVED #/A/2",),
        "Confluent: REQUIRED_FIELD_REMOVED breaks",
        PROTO2,
    ),
    Case(
        "a required field more, in an edition",
        "message A { int32 x = 1; }",
        "message A { int32 x = 1; int32 y = 2 [features.field_presence = LEGACY_REQUIRED]; }",
        ("!REQUIRED_FIELD_ADDED #/A/2",),
        "guide: LEGACY_REQUIRED is what required was",
        'edition = "2023"; ',
    ),
    *(
        Case(
            f"{old} to {new}",
            f"message A {{ {old} x = 1; }}",
            f"message A {{ {new} x = 1; }}",
            (),
            "guide: these types read each other's bytes",
        )
        for old, new in [
            *(("int32", "int64"), ("int32", "uint32"), ("int64", "uint64"), ("int32", "bool")),
            *(("sint32", "sint64"), ("string", "bytes"), ("fixed32", "sfixed32")),
            ("fixed64", "sfixed64"),
        ]
    ),
    *(
        Case(
            f"{old} to {new}",
            f"message A {{ {old} x = 1; }}",
            f"message A {{ {new} x = 1; }}",
            ("!FIELD_SCALAR_KIND_CHANGED #/A/1",),
            "guide: other bytes, or other values",
        )
        for old, new in [
            *(("int32", "sint32"), ("int32", "string"), ("fixed32", "fixed64")),
            *(("float", "fixed32"), ("double", "fixed64"), ("float", "double")),
            ("int64", "sfixed64"),
        ]
    ),
    Case(
        "a number to an enum",
        "message A { int32 x = 1; }",
        "message A { E x = 1; } enum E { ZERO = 0; }",
        ("ENUM_ADDED #/E",),
        "guide: an enum is a number on the wire",
    ),
    Case(
        "an enum to a number",
        "message A { E x = 1; } enum E { ZERO = 0; }",
        "message A { int64 x = 1; }",
        ("ENUM_REMOVED #/E",),
        "guide: an enum is a number on the wire",
    ),
    Case(
        "constants of an enum",
        "message A { enum E { ZERO = 0; ONE = 1; TWO = 2; } }",
        "message A { enum E { ZERO = 0; UNO = 1; THREE = 3; } }",
        (
            "ENUM_CONST_CHANGED #/A/E/1",
            "ENUM_CONST_REMOVED #/A/E/2",
            "ENUM_CONST_ADDED #/A/E/3",
        ),
        "Confluent: all three are compatible",
    ),
    Case(
        "a number to a message",
        "message A { int32 x = 1; message B {} }",
        "message A { B x = 1; message B {} }",
        ("!FIELD_KIND_CHANGED #/A/1",),
        "Confluent: FIELD_KIND_CHANGED breaks",
    ),
    Case(
        "a message to a map",
        "message A { repeated B x = 1; message B { string key = 1; int32 value = 2; } }",
        "message A { map<string, int32> x = 1; message B { string key = 1; int32 value = 2; } }",
        ("!FIELD_KIND_CHANGED #/A/1",),
        "Confluent: a map is a kind of its own, though the bytes are the same",
    ),
    Case(
        "a group to a message",
        "message A { optional group G = 1 {} }",
        "message A { optional G g = 1; message G {} }",
        ("!FIELD_KIND_CHANGED #/A/1",),
        "guide: groups have other bytes than messages; Confluent does not look at groups",
        PROTO2,
    ),
    Case(
        "the value of a map",
        "message A { map<string, int32> x = 1; }",
        "message A { map<string, string> x = 1; }",
        ("!FIELD_SCALAR_KIND_CHANGED #/A/1",),
        "Confluent compares keys and values of maps as fields",
    ),
    Case(
        "the key of a map",
        "message A { map<int32, int32> x = 1; }",
        "message A { map<int64, int32> x = 1; }",
        (),
        "Confluent compares keys and values of maps as fields",
    ),
    Case(
        "another message as type",
        "message A { B x = 1; } message B {} message C {}",
        "message A { C x = 1; } message B {} message C {}",
        ("!FIELD_NAMED_TYPE_CHANGED #/A/1",),
        "Confluent: messages are known by name, whatever they hold",
    ),
    Case(
        "a message that is repeated now",
        "message A { optional B x = 1; message B {} }",
        "message A { repeated B x = 1; message B {} }",
        (),
        "Confluent does not look at labels of messages; guide: the last one is read",
    ),
    Case(
        "a string that is repeated now",
        "message A { optional string x = 1; }",
        "message A { repeated string x = 1; }",
        ("FIELD_STRING_OR_BYTES_LABEL_CHANGED #/A/1",),
        "guide: readers of one string take the last of many",
    ),
    Case(
        "a number that is repeated now",
        "message A { optional int32 x = 1; }",
        "message A { repeated int32 x = 1; }",
        ("!FIELD_NUMERIC_LABEL_CHANGED #/A/1",),
        "guide: numbers are packed when repeated, and readers of one do not unpack",
    ),
    Case(
        "a number without a label that is repeated now",
        "message A { int32 x = 1; }",
        "message A { repeated int32 x = 1; }",
        (),
        "Confluent compares labels only where both are written",
    ),
    Case(
        "a message more",
        "message A {}",
        "message A {} message B {}",
        ("MESSAGE_ADDED #/B",),
        "Confluent: MESSAGE_ADDED is compatible",
    ),
    Case(
        "a message less",
        "message A {} message B { message C {} }",
        "message A {} message B {}",
        ("!MESSAGE_REMOVED #/B/C",),
        "Confluent: MESSAGE_REMOVED breaks, as payloads may be of it",
    ),
    Case(
        "a map less",
        "message A { map<string, int32> x = 1; }",
        "message A {}",
        ("FIELD_REMOVED #/A/1",),
        "Confluent: the entry message of a map is not counted as removed",
    ),
    Case(
        "messages in another order",
        "message A {} message B {}",
        "message B {} message A {}",
        ("MESSAGE_MOVED #/A", "MESSAGE_MOVED #/B"),
        "Confluent: places of messages are those of the schema that a payload names",
    ),
    Case(
        "a field into a new oneof",
        "message A { int32 x = 1; }",
        "message A { oneof o { int32 x = 1; int32 y = 2; } }",
        ("ONEOF_ADDED #/A/o", "ONEOF_FIELD_ADDED #/A/o/2"),
        "guide: a single field may move into a new oneof",
    ),
    Case(
        "several fields into a new oneof",
        "message A { int32 x = 1; int32 y = 2; }",
        "message A { oneof o { int32 x = 1; int32 y = 2; } }",
        ("!MULTIPLE_FIELDS_MOVED_TO_ONEOF #/A/o", "ONEOF_ADDED #/A/o"),
        "guide: several fields may not, as both may be set",
    ),
    Case(
        "a field into a oneof that was there",
        "message A { int32 x = 1; oneof o { int32 y = 2; } }",
        "message A { oneof o { int32 x = 1; int32 y = 2; } }",
        ("!FIELD_MOVED_TO_EXISTING_ONEOF #/A/o",),
        "guide: moving fields into an existing oneof is not safe",
    ),
    Case(
        "a field from one oneof into another",
        "message A { oneof o { int32 x = 1; int32 z = 3; } oneof p { int32 y = 2; } }",
        "message A { oneof o { int32 z = 3; } oneof p { int32 x = 1; int32 y = 2; } }",
        ("!FIELD_MOVED_TO_EXISTING_ONEOF #/A/p",),
        "Confluent: fields of two groups exclude each other now",
    ),
    Case(
        "a oneof with another name",
        "message A { oneof o { int32 x = 1; int32 y = 2; } }",
        "message A { oneof p { int32 x = 1; int32 y = 2; } }",
        ("ONEOF_REMOVED #/A/o", "ONEOF_ADDED #/A/p"),
        "Confluent: the fields are what counts",
    ),
    Case(
        "a type that changes with the oneof's name",
        "message A { oneof o { int32 x = 1; int32 y = 2; } }",
        "message A { oneof p { int32 x = 1; string y = 2; } }",
        (
            "ONEOF_REMOVED #/A/o",
            "ONEOF_ADDED #/A/p",
            "!FIELD_SCALAR_KIND_CHANGED #/A/p/2",
        ),
        "Confluent: a oneof's new name hides nothing",
    ),
    Case(
        "a member of a oneof less",
        "message A { oneof o { int32 x = 1; int32 y = 2; } }",
        "message A { oneof o { int32 x = 1; } }",
        ("!ONEOF_FIELD_REMOVED #/A/o/2",),
        "guide: a reader can no longer see if it was set",
    ),
    Case(
        "a member less, and the oneof has another name",
        "message A { oneof o { int32 x = 1; int32 y = 2; } }",
        "message A { oneof p { int32 x = 1; } }",
        ("ONEOF_REMOVED #/A/o", "ONEOF_ADDED #/A/p", "!ONEOF_FIELD_REMOVED #/A/o/2"),
        "Confluent: a member that goes while others stay is a loss",
    ),
    Case(
        "a whole oneof less",
        "message A { oneof o { int32 x = 1; int32 y = 2; } }",
        "message A {}",
        ("ONEOF_REMOVED #/A/o",),
        "Confluent: a oneof may go with all its members",
    ),
    Case(
        "a field out of a oneof",
        "message A { oneof o { int32 x = 1; int32 y = 2; } }",
        "message A { oneof o { int32 x = 1; } int32 y = 2; }",
        ("ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/A/2",),
        "Confluent: fewer exclusions break nothing",
    ),
    Case(
        "an optional field of proto3",
        "message A { int32 x = 1; }",
        "message A { optional int32 x = 1; }",
        (),
        "Confluent: the oneof of an optional field does not count",
    ),
]  # fmt: skip


def compiled(text: str, *dependencies: Dependency) -> ProtobufSchema:
    return parse(text, dependencies)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_change_is_found_as_by_confluent(case: Case) -> None:
    """SCH-13"""
    old, new = compiled(case.head + case.old), compiled(case.head + case.new)
    found = tuple(
        f"{'' if difference.is_compatible else '!'}{difference.kind} {difference.path}"
        for difference in differences(new, old)
    )
    assert found == case.found


def test_only_breaking_changes_are_reported_in_confluents_words() -> None:
    old = compiled('syntax = "proto3"; message A { int32 x = 1; int32 y = 2; }')
    new = compiled('syntax = "proto3"; message A { string x = 1; }')
    (found,) = incompatibilities(new, old)
    assert (found.name, found.path) == ("FIELD_SCALAR_KIND_CHANGED", "#/A/1")
    assert found.text == (
        "The kind of a SCALAR field at path '#/A/1' in the new schema does not match its kind in"
        " the old schema"
    )


MAIN = 'syntax = "proto3"; import "p.proto"; message A { p.Part part = 1; }'


def part(body: str, package: str = "p") -> Dependency:
    return Dependency("p.proto", f'syntax = "proto3"; package {package}; {body}')


def test_a_change_in_an_imported_file_is_reported_there_and_at_its_uses() -> None:
    old = compiled(MAIN, part("message Part { int32 x = 1; }"))
    new = compiled(MAIN, part("message Part { string x = 1; }"))
    assert [f"{found.kind} {found.path}" for found in differences(new, old)] == [
        "FIELD_SCALAR_KIND_CHANGED #/Part/1",
        "FIELD_NAMED_TYPE_CHANGED #/A/1",
    ]


def test_an_imported_file_may_change_its_package() -> None:
    old = compiled(MAIN, part("message Part { int32 x = 1; }"))
    new = compiled(
        MAIN.replace("p.Part", "q.Part"), part("message Part { int32 x = 1; }", package="q")
    )
    assert differences(new, old) == []


def test_recursive_messages_of_imports_are_compared_once() -> None:
    old = compiled(MAIN, part("message Part { Part next = 1; int32 x = 2; }"))
    new = compiled(MAIN, part("message Part { Part next = 1; double x = 2; }"))
    assert [f"{found.kind} {found.path}" for found in differences(new, old)] == [
        "FIELD_SCALAR_KIND_CHANGED #/Part/2",
        "FIELD_NAMED_TYPE_CHANGED #/A/1",
    ]


def test_a_change_at_the_end_of_a_long_chain_of_messages_is_found() -> None:
    links = "".join(f"message Part{at} {{ Part{at + 1} next = 1; }} " for at in range(300))
    main = MAIN.replace("p.Part", "p.Part0")
    old = compiled(main, part(f"{links} message Part300 {{ int32 x = 1; }}"))
    new = compiled(main, part(f"{links} message Part300 {{ string x = 1; }}"))
    assert any(found.path == "#/Part300/1" for found in incompatibilities(new, old))


def test_maps_written_out_are_the_same_as_maps() -> None:
    old = compiled('syntax = "proto3"; message A { map<string, int32> m = 1; }')
    new = compiled(
        'syntax = "proto3"; message A { repeated MEntry m = 1; message MEntry { '
        "option map_entry = true; string key = 1; int32 value = 2; } }"
    )
    assert differences(new, old) == []


def wide(type: str, fields: int) -> ProtobufSchema:
    lines = "".join(f"{type} x{number} = {number};" for number in range(1, fields + 1))
    return parse(f'syntax = "proto3"; message A {{ {lines} }}')


@pytest.mark.parametrize(("pairs_max", "is_compared"), [(101, True), (100, False)])
def test_a_comparison_ends_at_its_limit(
    monkeypatch: pytest.MonkeyPatch, pairs_max: int, is_compared: bool
) -> None:
    """A message and its hundred fields."""
    monkeypatch.setattr(comparing, "PAIRS_MAX", pairs_max)
    found = incompatibilities(wide("int64", 100), wide("int32", 100))
    assert [one.name for one in found] == ([] if is_compared else ["TOO_COMPLEX"])


def test_the_number_of_reported_differences_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "DIFFERENCES_MAX", 10)
    assert len(incompatibilities(wide("string", 100), wide("int32", 100))) == 10
