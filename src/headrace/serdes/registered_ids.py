"""The schema ids that a registry has assigned, by subject, replayed from its topic.

A broker uses them to reject payloads of unregistered schemas, so only the necessary parts are kept.
As in the registry, an id is never reassigned to another schema, so such records are skipped.
"""

from typing import NamedTuple

from headrace.serdes import schema_records
from headrace.serdes.fingerprints import fingerprint, guid
from headrace.serdes.subject_names import SubjectMatch, context_of
from headrace.serdes.wire_format import SchemaId

_decode = schema_records.decoder_of(
    {
        schema_records.SchemaKey: schema_records.SchemaValue,
        schema_records.DeleteSubjectKey: schema_records.DeleteSubjectValue,
        schema_records.ClearSubjectKey: schema_records.ClearSubjectValue,
    }
)


class _Version(NamedTuple):
    """A version of a subject; a deleted version still reserves its id."""

    ids: tuple[SchemaId, ...]
    holder: tuple[str, int]
    """The context of the id, and the id."""
    is_live: bool


class _Text(NamedTuple):
    """The schema of an id, and the number of versions with it."""

    digest: bytes
    versions: int


class RegisteredIds:
    """The versions of every subject. Threads may read while the owner replays."""

    def __init__(self) -> None:
        self.skipped = 0
        """Number of records that concern no ids, are invalid, or reuse the id of another schema."""
        self._subjects: dict[SchemaId, frozenset[str]] = {}
        self._versions: dict[str, dict[int, _Version]] = {}
        self._uses: dict[tuple[SchemaId, str], int] = {}
        self._texts: dict[tuple[str, int], _Text] = {}

    def subjects_of(self, id_: SchemaId) -> frozenset[str]:
        """Return the subjects with a live registration of a schema; empty if unknown."""
        return self._subjects.get(id_, frozenset())

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Apply one record of the topic."""
        try:
            change = _decode(key, value)
        except schema_records.UnknownRecord:
            self.skipped += 1
            return
        match change:
            case schema_records.SchemaKey() as found, schema_records.SchemaValue() as stored:
                self._store(found, stored)
            case schema_records.SchemaKey() as found, None:
                self._forget(found.subject, found.version)
            case _, schema_records.DeleteSubjectValue() as deleted:
                self._mark_deleted(deleted)
            case _, schema_records.ClearSubjectValue() as cleared:
                self._clear(cleared.subject)

    def _store(self, key: schema_records.SchemaKey, value: schema_records.SchemaValue) -> None:
        holder, digest = (context_of(key.subject), value.id), fingerprint(value.schema)
        known = self._texts.get(holder)
        if known is not None and known.digest != digest:
            self.skipped += 1
            return
        self._forget(key.subject, key.version)
        ids: tuple[SchemaId, ...] = value.id, guid(value.fingerprint())
        known = self._texts.get(holder, _Text(digest, 0))
        self._texts[holder] = _Text(digest, known.versions + 1)
        version = _Version(ids, holder, not value.deleted)
        self._versions.setdefault(key.subject, {})[key.version] = version
        if version.is_live:
            self._show(ids, key.subject)

    def _forget(self, subject: str, number: int) -> None:
        versions = self._versions.get(subject, {})
        version = versions.pop(number, None)
        if version is None:
            return
        if not versions:
            del self._versions[subject]
        digest, others = self._texts.pop(version.holder)
        if others > 1:
            self._texts[version.holder] = _Text(digest, others - 1)
        if version.is_live:
            self._hide(version.ids, subject)

    def _mark_deleted(self, upto: schema_records.DeleteSubjectValue) -> None:
        versions = self._versions.get(upto.subject, {})
        for number, version in versions.items():
            if number <= upto.version and version.is_live:
                versions[number] = version._replace(is_live=False)
                self._hide(version.ids, upto.subject)

    def _clear(self, subject: str | None) -> None:
        match = SubjectMatch(subject)
        for name in [name for name in self._versions if match.covers(name)]:
            for number, version in list(self._versions[name].items()):
                if not version.is_live:
                    self._forget(name, number)

    def _show(self, ids: tuple[SchemaId, ...], subject: str) -> None:
        for id_ in ids:
            self._uses[id_, subject] = self._uses.get((id_, subject), 0) + 1
            self._subjects[id_] = self.subjects_of(id_) | {subject}

    def _hide(self, ids: tuple[SchemaId, ...], subject: str) -> None:
        """Hide ids, unless another version of the subject shares them after a schema came back."""
        for id_ in ids:
            uses = self._uses.pop((id_, subject)) - 1
            if uses:
                self._uses[id_, subject] = uses
                continue
            left = self.subjects_of(id_) - {subject}
            if left:
                self._subjects[id_] = left
            else:
                del self._subjects[id_]
