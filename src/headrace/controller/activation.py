"""The first records of a new active controller, before any other decision."""

from collections.abc import Sequence

from headrace.controller.decision import ClusterDefaults, Decision
from headrace.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    METADATA_VERSION,
    has_transactions,
)
from headrace.metadata.image import MetadataImage, ResourceType
from headrace.metadata.records import VersionedRecord
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)


def activate(
    image: MetadataImage,
    bootstrap: Sequence[Message],
    defaults: ClusterDefaults,
    *,
    in_transaction: bool,
) -> Decision[None]:
    """Abort an unfinished transaction; fill an empty log with the bootstrap records.

    `bootstrap` has the records of `bootstrap.checkpoint`, which formatting writes. They are one
    transaction in the log: after a crash in its middle, the cluster does not count as set up.
    """
    records: list[Message] = []
    if in_transaction:
        records.append(AbortTransactionRecord("Controller failover"))
    if image.is_empty:
        records += _bootstrap(bootstrap, defaults)
    return Decision([VersionedRecord(record) for record in records], None)


def _bootstrap(bootstrap: Sequence[Message], defaults: ClusterDefaults) -> list[Message]:
    levels = {
        one.name: one.feature_level for one in bootstrap if isinstance(one, FeatureLevelRecord)
    }
    records = list(bootstrap)
    if levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0):
        min_isr = str(defaults.min_insync_replicas)
        records.append(ConfigRecord(ResourceType.BROKER, "", "min.insync.replicas", min_isr))
    if not has_transactions(levels.get(METADATA_VERSION, 0)):
        return records
    return [BeginTransactionRecord("Bootstrap records"), *records, EndTransactionRecord()]
