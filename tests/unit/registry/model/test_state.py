"""The state after a sequence of records."""

from headrace.registry.compatibility.levels import Level
from headrace.registry.model.records import (
    Change,
    ConfigKey,
    ConfigValue,
    ContextKey,
    ContextValue,
    Mode,
    ModeKey,
    ModeValue,
    NoopKey,
)
from headrace.registry.model.state import State
from headrace.serdes.contracts import Reference
from headrace.serdes.schema_records import (
    ClearSubjectKey,
    ClearSubjectValue,
    DeleteSubjectKey,
    DeleteSubjectValue,
    SchemaKey,
    SchemaValue,
)


def state_of(*changes: Change) -> State:
    state = State()
    for number, change in enumerate(changes):
        state.replay(change, number)
    return state


def stored(
    subject: str,
    version: int,
    id: int,
    *references: Reference,
    text: str | None = None,
    deleted: bool = False,
) -> Change:
    value = SchemaValue(
        subject,
        version,
        id,
        references=list(references) or None,
        schema=text or f"schema {id}",
        deleted=deleted,
    )
    return Change(SchemaKey(subject, version), value)


def versions(state: State, subject: str, *, with_deleted: bool = False) -> list[int]:
    return [entry.value.version for entry in state.versions(subject, with_deleted=with_deleted)]


def test_versions_are_sorted_for_any_order_of_records() -> None:
    assert versions(state_of(stored("a", 2, 2), stored("a", 1, 1)), "a") == [1, 2]


def test_deleting_a_subject_marks_its_versions_up_to_one() -> None:
    upto = Change(DeleteSubjectKey("a"), DeleteSubjectValue("a", 1))
    state = state_of(stored("a", 1, 1), upto, stored("a", 2, 2))
    assert versions(state, "a") == [2]
    assert versions(state, "a", with_deleted=True) == [1, 2]


def test_a_tombstone_removes_a_version_and_its_id() -> None:
    state = state_of(stored("a", 1, 1), stored("a", 2, 2), Change(SchemaKey("a", 1)))
    assert state.by_id(1) is None
    assert versions(state, "a", with_deleted=True) == [2]


def test_a_subject_without_versions_is_gone() -> None:
    state = state_of(stored("a", 1, 1), Change(SchemaKey("a", 1)))
    assert not state.has_subject("a", with_deleted=True)


def test_an_id_lives_on_while_a_subject_has_it() -> None:
    state = state_of(stored("a", 1, 1), stored("b", 1, 1), Change(SchemaKey("a", 1)))
    found = state.by_id(1)
    assert found is not None
    assert found.value.subject == "b"


def test_an_id_of_another_schema_is_not_overwritten() -> None:
    """As with Confluent, the first record has the id and the other one is skipped."""
    state = state_of(stored("a", 1, 1, text="first"), stored("b", 1, 1, text="second"))
    assert not state.has_subject("b", with_deleted=True)


def test_ids_count_up_from_the_highest_ever_seen() -> None:
    state = state_of(stored("a", 1, 9), stored("a", 2, 4), Change(SchemaKey("a", 1)))
    assert state.id_max(".") == 9


def test_contexts_have_ids_of_their_own() -> None:
    state = state_of(stored("a", 1, 1), stored(":.x:a", 1, 1, text="other"))
    found = state.by_id(1, ":.x:")
    assert found is not None
    assert found.value.schema == "other"


def test_a_subject_without_context_is_looked_for_in_all() -> None:
    context = Change(ContextKey(context=".x"), ContextValue(context=".x"))
    state = state_of(context, stored(":.x:a", 1, 1))
    found = state.version_anywhere("a", 1)
    assert found is not None
    assert found.value.subject == ":.x:a"


def test_an_id_under_a_subject_is_looked_for_in_all_contexts() -> None:
    context = Change(ContextKey(context=".x"), ContextValue(context=".x"))
    state = state_of(context, stored(":.x:a", 1, 5))
    found = state.by_id(5, "a")
    assert found is not None
    assert found.value.subject == ":.x:a"


def test_clearing_removes_only_deleted_versions() -> None:
    state = state_of(
        stored("a", 1, 1, deleted=True),
        stored("b", 1, 2),
        Change(ClearSubjectKey(), ClearSubjectValue()),
    )
    assert list(state.subjects) == ["b"]


def test_references_are_found_from_both_ends() -> None:
    state = state_of(stored("a", 1, 1), stored("b", 1, 2, Reference("A", "a", 1)))
    assert state.referrers(SchemaKey("a", 1)) == [(".", 2)]
    assert state.referring_subjects(SchemaKey("a", 1)) == {"b"}


def test_a_deleted_referrer_counts_only_where_asked_for() -> None:
    state = state_of(stored("a", 1, 1), stored("b", 1, 2, Reference("A", "a", 1), deleted=True))
    assert state.referrers(SchemaKey("a", 1)) == []
    assert state.referrers(SchemaKey("a", 1), with_deleted=True) == [(".", 2)]


def test_a_referrer_that_is_gone_does_not_count() -> None:
    state = state_of(
        stored("a", 1, 1), stored("b", 1, 2, Reference("A", "a", 1)), Change(SchemaKey("b", 1))
    )
    assert state.referrers(SchemaKey("a", 1), with_deleted=True) == []


def test_the_same_record_twice_is_as_once() -> None:
    record = stored("b", 1, 2, Reference("A", "a", 1))
    state = state_of(stored("a", 1, 1), record, record, Change(SchemaKey("b", 1)))
    assert state.referrers(SchemaKey("a", 1), with_deleted=True) == []


def test_a_subject_without_level_has_its_contexts() -> None:
    state = state_of(
        Change(ConfigKey(), ConfigValue(compatibility_level=Level.FULL)),
        Change(ConfigKey(":.x:"), ConfigValue(compatibility_level=Level.NONE)),
    )
    assert state.config_in_scope(":.x:a").compatibility_level is Level.NONE
    assert state.config_in_scope("a").compatibility_level is Level.FULL


def test_settings_of_every_context_count_last() -> None:
    wide = Change(ConfigKey(":.__GLOBAL:"), ConfigValue(compatibility_level=Level.FORWARD))
    assert state_of(wide).config_in_scope(":.x:a").compatibility_level is Level.FORWARD


def test_a_subject_inherits_settings_that_only_the_default_has() -> None:
    state = state_of(
        Change(ConfigKey(), ConfigValue(normalize=True, compatibility_level=Level.FULL)),
        Change(ConfigKey("a"), ConfigValue(compatibility_level=Level.NONE)),
    )
    found = state.config_in_scope("a")
    assert (found.normalize, found.compatibility_level) == (True, Level.NONE)


def test_the_defaults_are_backward_and_writable() -> None:
    state = State()
    assert state.config_in_scope("a").compatibility_level is Level.BACKWARD
    assert state.mode_in_scope("a") is Mode.READWRITE


def test_modes_have_the_same_scopes() -> None:
    state = state_of(
        Change(ModeKey(), ModeValue(None, Mode.READONLY)),
        Change(ModeKey("a"), ModeValue("a", Mode.IMPORT)),
    )
    assert [state.mode_in_scope(name) for name in ("a", "b")] == [Mode.IMPORT, Mode.READONLY]


def test_settings_are_taken_back_by_tombstones() -> None:
    state = state_of(
        Change(ModeKey("a"), ModeValue("a", Mode.READONLY)),
        Change(ModeKey("a")),
        Change(ConfigKey("a"), ConfigValue(compatibility_level=Level.NONE)),
        Change(ConfigKey("a")),
    )
    assert (state.mode("a"), state.config("a")) == (None, None)


def test_a_noop_changes_nothing_but_the_count() -> None:
    assert state_of(Change(NoopKey())).changes == 1


def test_an_alias_leads_to_its_subject() -> None:
    state = state_of(Change(ConfigKey("new"), ConfigValue(alias="old")))
    assert (state.unaliased("new"), state.unaliased("old")) == ("old", "old")
