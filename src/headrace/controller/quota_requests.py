"""AlterClientQuotas, from request to response."""

from collections.abc import Mapping

from headrace.controller.decision import Decision, check_size
from headrace.controller.requests import Context
from headrace.errors import InvalidRequest, KafkaError
from headrace.metadata.image import Entity, MetadataImage
from headrace.metadata.records import VersionedRecord
from headrace.protocol.schemas.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)
from headrace.protocol.schemas.records.metadata import ClientQuotaRecord, EntityData
from headrace.quotas.validation import check_entity, check_value


def alter_client_quotas(
    image: MetadataImage, request: AlterClientQuotasRequest, context: Context
) -> Decision[AlterClientQuotasResponse]:
    """Change the quotas of each entity; an error of one entity leaves that entity as it is."""
    records: dict[Entity, list[VersionedRecord]] = {}
    errors: dict[Entity, KafkaError | None] = {}
    for entry in request.entries:
        parts: dict[str, str | None] = {one.entity_type: one.entity_name for one in entry.entity}
        entity = tuple(sorted(parts.items()))
        try:
            if entity in errors:
                raise InvalidRequest("an entity cannot be altered twice in the same request")
            records[entity] = _records(image, entity, entry)
            errors[entity] = None
        except KafkaError as error:
            records.pop(entity, None)
            errors[entity] = error
    written = [record for some in records.values() for record in some]
    check_size(written, "the change of quotas")
    response = AlterClientQuotasResponse(entries=[_answer(*one) for one in errors.items()])
    return Decision([] if request.validate_only else written, response)


def _records(
    image: MetadataImage, entity: Entity, entry: AlterClientQuotasRequestEntryData
) -> list[VersionedRecord]:
    """Return the records of the values that change; raise if the entry is invalid."""
    check_entity(dict(entity))
    changes: dict[str, float | None] = {}
    for one in entry.ops:
        if one.key in changes:
            raise InvalidRequest(f"the quota {one.key} cannot be altered twice for an entity")
        if not one.remove:
            check_value(dict(entity), one.key, one.value)
        changes[one.key] = None if one.remove else one.value
    present: Mapping[str, float] = image.client_quotas.get(entity, {})
    return [
        VersionedRecord(_record(entity, key, value))
        for key, value in changes.items()
        if present.get(key) != value
    ]


def _record(entity: Entity, key: str, value: float | None) -> ClientQuotaRecord:
    return ClientQuotaRecord(
        entity=[EntityData(kind, name) for kind, name in entity],
        key=key,
        value=value or 0.0,
        remove=value is None,
    )


def _answer(entity: Entity, error: KafkaError | None) -> AlterClientQuotasResponseEntryData:
    return AlterClientQuotasResponseEntryData(
        error_code=error.code if error else 0,
        error_message=str(error) if error else None,
        entity=[AlterClientQuotasResponseEntityData(kind, name) for kind, name in entity],
    )
