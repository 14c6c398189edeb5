"""Aligns protoc's descriptor with the descriptor of the schema's author.

Payloads identify their message by its index. If the author wrote map entries as messages, they
count; protoc creates entries itself, before other nested messages. protoc also gives every field a
JSON name, while generated classes have only explicit ones.
"""

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from headrace.serdes.protobuf.elements import Field, File, Message


def align(file: File, descriptor: FileDescriptorProto) -> None:
    extending = [field for extend in file.extends for field in extend.fields]
    clear_json_names(extending, list(descriptor.extension))
    written = {message.name: message for message in (*file.messages, *groups_of(extending))}
    for made in descriptor.message_type:
        if made.name in written:
            align_message(written[made.name], made)


def align_message(message: Message, made: DescriptorProto) -> None:
    members = [field for oneof in message.oneofs for field in oneof.fields]
    extending = [field for extend in message.extends for field in extend.fields]
    clear_json_names([*message.fields, *members], list(made.field))
    clear_json_names(extending, list(made.extension))
    groups = groups_of([*message.fields, *members, *extending])
    written = {nested.name: nested for nested in (*message.messages, *groups)}
    order_nested(message, made)
    for nested in made.nested_type:
        if nested.name in written:
            align_message(written[nested.name], nested)
        else:
            clear_json_names([], list(nested.field))


def groups_of(fields: list[Field]) -> list[Message]:
    return [field.group for field in fields if field.group is not None]


def clear_json_names(fields: list[Field], made: list[FieldDescriptorProto]) -> None:
    named = {
        field.name
        for field in fields
        if any(option.name == "json_name" for option in field.options)
    }
    for field in made:
        if field.name not in named:
            field.ClearField("json_name")


def order_nested(message: Message, made: DescriptorProto) -> None:
    """Sort nested messages by the text if it contains map entries."""
    if not any(nested.is_map_entry for nested in message.messages):
        return
    places = {nested.name: place for place, nested in enumerate(message.messages)}
    copies = [DescriptorProto.FromString(nested.SerializeToString()) for nested in made.nested_type]
    copies.sort(key=lambda nested: places.get(nested.name, len(places)))
    del made.nested_type[:]
    made.nested_type.extend(copies)
