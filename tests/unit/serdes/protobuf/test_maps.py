"""Maps whose entries are written out."""

from headrace.serdes.protobuf.maps import with_map_types
from headrace.serdes.protobuf.printing import print_file
from headrace.serdes.protobuf.reading import read

WRITTEN_OUT = """package p;
message A {
  repeated .p.A.MEntry m = 1;
  repeated NEntry n = 2;
  message MEntry { option map_entry = true; string key = 1; .p.B value = 2; }
  message Inner {}
  message NEntry { option map_entry = true; int32 key = 1; bytes value = 2; }
}
message B {}
"""


def test_entries_become_maps() -> None:
    (message, _) = with_map_types(read(WRITTEN_OUT)).messages
    assert [(field.label, field.type) for field in message.fields] == [
        (None, "map<string, .p.B>"),
        (None, "map<int32, bytes>"),
    ]
    assert [nested.name for nested in message.messages] == ["Inner"]


def test_a_file_without_entries_stays_as_it_is() -> None:
    file = read("message A { map<string, int32> m = 1; }")
    assert print_file(with_map_types(file)) == print_file(file)
