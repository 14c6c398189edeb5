"""What a controller writes when it takes over, before it decides anything else."""

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
    """Undo what a predecessor left half done; fill an empty log with the bootstrap records.

    `bootstrap` is what formatting has put into `bootstrap.checkpoint`. In the log it stands in a
    transaction, so that a crash in its middle is not taken for a cluster that is set up.
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
