"""Files that a schema may import without providing them."""

import pytest

from headrace.serdes.protobuf.known_imports import is_always_there
from headrace.serdes.protobuf.parsing import parse

KNOWN = [
    ("confluent/meta.proto", "confluent.Meta"),
    ("confluent/type/decimal.proto", "confluent.type.Decimal"),
    ("confluent/type/variant.proto", "confluent.type.Variant"),
    ("google/protobuf/any.proto", "google.protobuf.Any"),
    ("google/protobuf/api.proto", "google.protobuf.Api"),
    ("google/protobuf/descriptor.proto", "google.protobuf.FileDescriptorProto"),
    ("google/protobuf/duration.proto", "google.protobuf.Duration"),
    ("google/protobuf/empty.proto", "google.protobuf.Empty"),
    ("google/protobuf/field_mask.proto", "google.protobuf.FieldMask"),
    ("google/protobuf/source_context.proto", "google.protobuf.SourceContext"),
    ("google/protobuf/struct.proto", "google.protobuf.Struct"),
    ("google/protobuf/timestamp.proto", "google.protobuf.Timestamp"),
    ("google/protobuf/type.proto", "google.protobuf.Type"),
    ("google/protobuf/wrappers.proto", "google.protobuf.Int64Value"),
    ("google/type/calendar_period.proto", "google.type.CalendarPeriod"),
    ("google/type/color.proto", "google.type.Color"),
    ("google/type/date.proto", "google.type.Date"),
    ("google/type/datetime.proto", "google.type.DateTime"),
    ("google/type/dayofweek.proto", "google.type.DayOfWeek"),
    ("google/type/decimal.proto", "google.type.Decimal"),
    ("google/type/expr.proto", "google.type.Expr"),
    ("google/type/fraction.proto", "google.type.Fraction"),
    ("google/type/interval.proto", "google.type.Interval"),
    ("google/type/latlng.proto", "google.type.LatLng"),
    ("google/type/money.proto", "google.type.Money"),
    ("google/type/month.proto", "google.type.Month"),
    ("google/type/phone_number.proto", "google.type.PhoneNumber"),
    ("google/type/postal_address.proto", "google.type.PostalAddress"),
    ("google/type/quaternion.proto", "google.type.Quaternion"),
    ("google/type/timeofday.proto", "google.type.TimeOfDay"),
]


def test_all_files_of_confluents_registry_can_be_imported() -> None:
    imports = "".join(f'import "{name}";\n' for name, _ in KNOWN)
    fields = "".join(f"  {type_} f{at} = {at};\n" for at, (_, type_) in enumerate(KNOWN, 1))
    text = f'syntax = "proto3";\n{imports}message M {{\n{fields}}}'
    assert {type_ for _, type_ in KNOWN} <= parse(text).names.types


@pytest.mark.parametrize("name", ["x.proto", "../x", "/etc/passwd", "a\0b", ""])
def test_other_files_are_not_there(name: str) -> None:
    assert not is_always_there(name)
