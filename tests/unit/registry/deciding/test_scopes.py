"""Settings and modes: changing and removing them, and invalid ones."""

import msgspec
import pytest

from headrace.registry.compatibility.levels import Level
from headrace.registry.deciding.deletion import delete_subject
from headrace.registry.deciding.scopes import (
    ConfigUpdate,
    check_config,
    delete_config,
    delete_mode,
    parsed_mode,
    set_mode,
    update_config,
)
from headrace.registry.errors import (
    InvalidCompatibilityLevel,
    InvalidMode,
    InvalidRuleSet,
    NotPermitted,
    SubjectNotFound,
)
from headrace.registry.model.records import Mode
from headrace.serdes.contracts import Rule, RuleSet
from tests.processes.registries import USER, Shelf


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def update(shelf: Shelf, subject: str | None, text: str) -> None:
    given = msgspec.json.decode(text, type=ConfigUpdate)
    check_config(given)
    shelf.apply(update_config(shelf.state, subject, given))


def test_settings_that_are_not_named_are_kept(shelf: Shelf) -> None:
    update(shelf, "a", '{"compatibility":"full","normalize":true}')
    update(shelf, "a", '{"compatibilityGroup":"major"}')
    found = shelf.state.config("a")
    assert found is not None
    assert (found.compatibility_level, found.normalize, found.compatibility_group) == (
        Level.FULL,
        True,
        "major",
    )


def test_null_removes_a_setting(shelf: Shelf) -> None:
    update(shelf, "a", '{"compatibility":"full","normalize":true}')
    update(shelf, "a", '{"normalize":null,"compatibility":null}')
    found = shelf.state.config("a")
    assert found is not None
    assert (found.compatibility_level, found.normalize) == (Level.BACKWARD, None)


@pytest.mark.parametrize("text", ['{"compatibility":"most"}', '{"compatibilityLevel":""}'])
def test_an_unknown_level_is_refused(shelf: Shelf, text: str) -> None:
    with pytest.raises(InvalidCompatibilityLevel):
        update(shelf, None, text)


def test_impossible_rules_are_refused() -> None:
    rules = RuleSet(domain_rules=[Rule(name="a")])
    with pytest.raises(InvalidRuleSet, match="Missing rule type"):
        check_config(ConfigUpdate(default_rules=rules))


def test_deleting_settings_returns_them(shelf: Shelf) -> None:
    update(shelf, "a", '{"compatibility":"full"}')
    reply = shelf.apply(delete_config(shelf.state, "a"))
    assert (reply.compatibility_level, shelf.state.config("a")) == (Level.FULL, None)


def test_settings_that_are_not_there_are_not_deleted(shelf: Shelf) -> None:
    with pytest.raises(SubjectNotFound):
        delete_config(shelf.state, "a")


def test_settings_of_a_read_only_subject_stay(shelf: Shelf) -> None:
    shelf.apply(set_mode(shelf.state, "a", Mode.READONLY))
    with pytest.raises(NotPermitted):
        update(shelf, "a", '{"compatibility":"full"}')


def test_modes_are_written_in_any_case() -> None:
    assert parsed_mode("readonly", None) is Mode.READONLY


@pytest.mark.parametrize(("text", "subject"), [("WRITE", None), ("", "a"), ("FORWARD", "a")])
def test_modes_that_there_are_not_are_refused(text: str, subject: str | None) -> None:
    with pytest.raises(InvalidMode):
        parsed_mode(text, subject)


def test_forwarding_is_for_every_context_at_once() -> None:
    assert parsed_mode("FORWARD", ":.__GLOBAL:") is Mode.FORWARD


def test_import_wants_an_empty_place(shelf: Shelf) -> None:
    shelf.register("a", USER)
    with pytest.raises(NotPermitted, match="found existing subjects"):
        set_mode(shelf.state, None, Mode.IMPORT)


def test_import_can_be_forced(shelf: Shelf) -> None:
    shelf.register("a", USER)
    shelf.apply(set_mode(shelf.state, "a", Mode.IMPORT, force=True))
    assert shelf.state.mode("a") is Mode.IMPORT


def test_import_clears_deleted_versions(shelf: Shelf) -> None:
    shelf.register("a", USER)
    shelf.apply(delete_subject(shelf.state, "a", permanent=False))
    shelf.apply(set_mode(shelf.state, None, Mode.IMPORT))
    assert not shelf.state.has_subject("a", with_deleted=True)


def test_an_empty_mode_removes_the_mode(shelf: Shelf) -> None:
    shelf.apply(set_mode(shelf.state, "a", Mode.READONLY))
    shelf.apply(set_mode(shelf.state, "a", None))
    assert shelf.state.mode("a") is None


def test_deleting_a_mode_returns_it(shelf: Shelf) -> None:
    shelf.apply(set_mode(shelf.state, "a", Mode.READONLY))
    assert shelf.apply(delete_mode(shelf.state, "a")) is Mode.READONLY
    with pytest.raises(SubjectNotFound):
        delete_mode(shelf.state, "a")


def test_deleting_the_mode_of_a_context_deletes_those_of_its_subjects(shelf: Shelf) -> None:
    for subject in (":.x:a", ":.x:b", "c"):
        shelf.apply(set_mode(shelf.state, subject, Mode.READONLY))
    shelf.apply(delete_mode(shelf.state, ":.x:", recursive=True))
    found = [shelf.state.mode(subject) for subject in (":.x:a", ":.x:b", "c")]
    assert found == [None, None, Mode.READONLY]
