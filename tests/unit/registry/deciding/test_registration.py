"""The id and version of a schema, and rejected registrations."""

import msgspec
import pytest

from headrace.registry.compatibility.levels import Level
from headrace.registry.deciding.candidates import Candidate
from headrace.registry.deciding.deletion import delete_subject, delete_version
from headrace.registry.deciding.registration import already_registered, register
from headrace.registry.deciding.scopes import ConfigUpdate, set_mode, update_config
from headrace.registry.errors import Incompatible, InvalidSchemaGiven, NotPermitted
from headrace.registry.model.records import ContextKey, Mode
from headrace.serdes.contracts import Metadata, Reference, Rule, RuleSet
from headrace.serdes.schema_records import SchemaKey
from tests.processes.registries import STRING, USER, USER_WITH_EMAIL, USER_WITH_NAME, Shelf


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def place(shelf: Shelf, subject: str, text: str, *references: Reference) -> tuple[int, int]:
    value = shelf.register(subject, text, *references).value
    return value.id, value.version


def test_ids_count_from_one_and_versions_by_subject(shelf: Shelf) -> None:
    """SCH-11."""
    assert place(shelf, "a", USER) == (1, 1)
    assert place(shelf, "a", USER_WITH_NAME) == (2, 2)
    assert place(shelf, "b", STRING) == (3, 1)


def test_one_schema_has_one_id_in_all_subjects(shelf: Shelf) -> None:
    assert [place(shelf, name, USER) for name in ("a", "b")] == [(1, 1), (1, 1)]


def test_the_same_schema_again_changes_nothing(shelf: Shelf) -> None:
    place(shelf, "a", USER)
    candidate = Candidate(subject="a", text=USER)
    decision = register(shelf.state, candidate, normalize=False)
    assert (decision.reply.value.id, list(decision.changes)) == (1, [])


def test_layout_makes_no_other_schema(shelf: Shelf) -> None:
    assert place(shelf, "a", USER) == place(shelf, "a", USER.replace(":", " :  "))


def test_an_older_version_is_found_as_well(shelf: Shelf) -> None:
    for text in (USER, USER_WITH_NAME):
        place(shelf, "a", text)
    assert place(shelf, "a", USER) == (1, 1)


def test_contexts_count_ids_by_themselves(shelf: Shelf) -> None:
    place(shelf, "a", USER)
    assert place(shelf, ":.x:a", STRING) == (1, 1)


def test_the_first_schema_of_a_context_makes_it_known(shelf: Shelf) -> None:
    candidate = Candidate(subject=":.x:a", text=USER)
    decision = register(shelf.state, candidate, normalize=False)
    assert [type(change.key) for change in decision.changes] == [ContextKey, SchemaKey]


def test_a_schema_that_cannot_read_older_data_is_refused(shelf: Shelf) -> None:
    """SCH-12."""
    place(shelf, "a", USER)
    with pytest.raises(Incompatible, match="READER_FIELD_MISSING_DEFAULT_VALUE"):
        place(shelf, "a", USER_WITH_EMAIL)


def test_without_a_level_anything_may_follow(shelf: Shelf) -> None:
    """SCH-12."""
    place(shelf, "a", USER)
    shelf.apply(update_config(shelf.state, "a", ConfigUpdate(compatibility=Level.NONE)))
    assert place(shelf, "a", USER_WITH_EMAIL) == (2, 2)


def test_force_passes_over_the_check(shelf: Shelf) -> None:
    place(shelf, "a", USER)
    candidate = Candidate(subject="a", text=USER_WITH_EMAIL)
    decision = register(shelf.state, candidate, normalize=False, force=True)
    assert decision.reply.value.version == 2


def test_only_versions_of_the_same_group_are_compared(shelf: Shelf) -> None:
    update = ConfigUpdate(compatibility_group="major")
    shelf.apply(update_config(shelf.state, None, update))
    shelf.register("a", USER, metadata=Metadata(properties={"major": "1"}))
    second = Metadata(properties={"major": "2"})
    assert shelf.register("a", USER_WITH_EMAIL, metadata=second).value.version == 2


def test_another_type_of_schema_is_not_a_next_version(shelf: Shelf) -> None:
    """SCH-13."""
    place(shelf, "a", USER)
    with pytest.raises(Incompatible, match="different schema type"):
        shelf.register("a", '{"type":"object"}', type="JSON")


@pytest.mark.parametrize(
    ("type", "text"),
    [
        ("JSON", '{"type":"object","properties":{"a":{"type":"string"}}}'),
        ("PROTOBUF", 'syntax = "proto3";\n\nmessage M {\n  string a = 1;\n}\n'),
    ],
)
def test_other_types_are_kept_as_they_are(shelf: Shelf, type: str, text: str) -> None:
    """SCH-13."""
    assert shelf.register("a", text, type=type).value.schema == text


def test_a_default_of_the_wrong_type_names_its_field(shelf: Shelf) -> None:
    """SCH-3."""
    text = '{"type":"record","name":"R","fields":[{"name":"taxcode","type":"int","default":"39"}]}'
    with pytest.raises(InvalidSchemaGiven, match="taxcode"):
        place(shelf, "a", text)


@pytest.mark.parametrize("type", ["XML", "avro", ""])
def test_types_that_there_are_not_are_refused(shelf: Shelf, type: str) -> None:
    with pytest.raises(InvalidSchemaGiven, match="Invalid schema type"):
        shelf.register("a", STRING, type=type)


def test_a_first_schema_without_text_is_refused(shelf: Shelf) -> None:
    with pytest.raises(InvalidSchemaGiven, match="Empty schema"):
        place(shelf, "a", "  ")


# --- references ---------------------------------------------------------------------------


ORDER = '{"type":"record","name":"Order","fields":[{"name":"user","type":"User"}]}'


def test_a_reference_brings_a_type_along(shelf: Shelf) -> None:
    place(shelf, "user", USER)
    assert place(shelf, "order", ORDER, Reference("User", "user", 1)) == (2, 1)


def test_the_latest_version_of_a_reference_is_written_down(shelf: Shelf) -> None:
    for text in (USER, USER_WITH_NAME):
        place(shelf, "user", text)
    stored = shelf.register("order", ORDER, Reference("User", "user", -1)).value
    assert stored.references == [Reference("User", "user", 2)]


@pytest.mark.parametrize(
    "reference",
    [Reference("User", "user", 9), Reference("User", "none", 1), Reference(None, "user", 1)],
)
def test_a_reference_to_nothing_is_refused(shelf: Shelf, reference: Reference) -> None:
    place(shelf, "user", USER)
    with pytest.raises(InvalidSchemaGiven, match="reference"):
        place(shelf, "order", ORDER, reference)


def test_a_new_schema_cannot_refer_to_a_deleted_one(shelf: Shelf) -> None:
    place(shelf, "user", USER)
    shelf.apply(delete_version(shelf.state, "user", 1, permanent=False))
    with pytest.raises(InvalidSchemaGiven, match="No schema reference found"):
        place(shelf, "order", ORDER, Reference("User", "user", 1))


def test_a_schema_with_its_references_put_in_is_the_same(shelf: Shelf) -> None:
    place(shelf, "user", USER)
    place(shelf, "order", ORDER, Reference("User", "user", 1))
    whole = ORDER.replace('"type":"User"', f'"type":{USER}')
    assert place(shelf, "order", whole) == (2, 1)


# --- what was deleted ---------------------------------------------------------------------


def test_registering_again_undoes_a_deletion_with_a_new_version(shelf: Shelf) -> None:
    place(shelf, "a", USER)
    shelf.apply(delete_subject(shelf.state, "a", permanent=False))
    assert place(shelf, "a", USER) == (1, 2)


def test_the_deleted_version_makes_room_for_its_schema(shelf: Shelf) -> None:
    place(shelf, "a", USER)
    shelf.apply(delete_subject(shelf.state, "a", permanent=False))
    place(shelf, "a", USER)
    found = shelf.state.versions("a", with_deleted=True)
    assert [entry.value.version for entry in found] == [2]


def test_deleted_versions_are_not_compared_with(shelf: Shelf) -> None:
    place(shelf, "a", USER)
    shelf.apply(delete_subject(shelf.state, "a", permanent=False))
    assert place(shelf, "a", USER_WITH_EMAIL) == (2, 2)


# --- modes and ids ------------------------------------------------------------------------


def test_a_read_only_subject_accepts_no_changes(shelf: Shelf) -> None:
    shelf.apply(set_mode(shelf.state, "a", Mode.READONLY))
    with pytest.raises(NotPermitted, match="read-only mode"):
        place(shelf, "a", USER)


def test_an_id_is_taken_in_import_mode_alone(shelf: Shelf) -> None:
    with pytest.raises(NotPermitted, match="not in import mode"):
        shelf.register("a", USER, id=7)
    shelf.apply(set_mode(shelf.state, None, Mode.IMPORT))
    value = shelf.register("a", USER, id=7, version=3).value
    assert (value.id, value.version) == (7, 3)


def test_import_mode_takes_no_schema_without_id(shelf: Shelf) -> None:
    shelf.apply(set_mode(shelf.state, None, Mode.IMPORT))
    with pytest.raises(NotPermitted, match="not in read-write mode"):
        place(shelf, "a", USER)


def test_import_does_not_give_an_id_a_second_schema(shelf: Shelf) -> None:
    shelf.apply(set_mode(shelf.state, None, Mode.IMPORT))
    shelf.register("a", USER, id=7)
    with pytest.raises(NotPermitted, match="Overwrite new schema with id 7"):
        shelf.register("b", STRING, id=7)


def test_import_checks_no_compatibility(shelf: Shelf) -> None:
    shelf.apply(set_mode(shelf.state, None, Mode.IMPORT))
    shelf.register("a", USER, id=7)
    assert shelf.register("a", USER_WITH_EMAIL, id=8).value.version == 2


def test_a_version_that_is_not_the_next_is_refused(shelf: Shelf) -> None:
    place(shelf, "a", USER)
    with pytest.raises(InvalidSchemaGiven, match="not one more"):
        shelf.register("a", USER_WITH_NAME, version=5)


# --- contracts ----------------------------------------------------------------------------


def test_other_metadata_is_another_schema(shelf: Shelf) -> None:
    place(shelf, "a", USER)
    value = shelf.register("a", USER, metadata=Metadata(properties={"owner": "ada"})).value
    assert (value.id, value.version) == (2, 2)


def test_a_new_version_keeps_metadata_and_rules(shelf: Shelf) -> None:
    rules = RuleSet(domain_rules=[Rule(name="r", type="CEL")])
    metadata = Metadata(properties={"owner": "ada"})
    shelf.register("a", USER, metadata=metadata, rules=rules)
    value = shelf.register("a", USER_WITH_NAME).value
    assert (value.metadata, value.rules) == (metadata, rules.sorted())


def test_a_change_of_metadata_needs_no_text(shelf: Shelf) -> None:
    place(shelf, "a", USER)
    value = shelf.register("a", "", metadata=Metadata(properties={"owner": "ada"})).value
    assert (value.schema, value.version) == (USER, 2)


def test_defaults_and_overrides_are_put_in(shelf: Shelf) -> None:
    update = ConfigUpdate(
        default_metadata=Metadata(properties={"team": "none", "owner": "x"}),
        override_metadata=Metadata(properties={"checked": "yes"}),
    )
    shelf.apply(update_config(shelf.state, "a", update))
    value = shelf.register("a", USER, metadata=Metadata(properties={"owner": "ada"})).value
    assert value.metadata == Metadata(properties={"checked": "yes", "owner": "ada", "team": "none"})


def test_the_version_in_the_metadata_follows_the_version(shelf: Shelf) -> None:
    shelf.register("a", USER, version=-1)
    value = shelf.register("a", USER_WITH_NAME).value
    assert value.metadata == Metadata(properties={"confluent:version": "2"})


# --- without the leader -------------------------------------------------------------------


def test_any_instance_finds_registered_schemas(shelf: Shelf) -> None:
    place(shelf, "a", USER)
    candidate = Candidate(subject="a", text=USER)
    found = already_registered(shelf.state, candidate, normalize=False)
    assert found is not None
    assert found.value.id == 1


def test_only_the_leader_decides_when_settings_change_the_schema(shelf: Shelf) -> None:
    place(shelf, "a", USER)
    update = ConfigUpdate(default_metadata=Metadata(properties={"a": "b"}))
    shelf.apply(update_config(shelf.state, "a", update))
    candidate = Candidate(subject="a", text=USER)
    assert already_registered(shelf.state, candidate, normalize=False) is None


def test_a_missing_schema_is_left_to_the_leader(shelf: Shelf) -> None:
    candidate = Candidate(subject="a", text=USER)
    wanted = msgspec.structs.replace(candidate, version=1, id=1)
    for one in (candidate, wanted):
        assert already_registered(shelf.state, one, normalize=False) is None
