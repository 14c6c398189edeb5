"""Records of `__transaction_state` written behind a broker's back: what a crash would have left."""

from pathlib import Path

from headrace.coordination.batches import encode_batch
from headrace.coordination.partitioning import partition_for
from headrace.protocol.batches import headers
from headrace.storage.topic_partition import TopicPartition
from headrace.transactions.states import State
from headrace.transactions.transaction import Transaction, encode

_OFFSET_SIZE = 8


def prepared(
    name: str, producer_id: int, epoch: int, topic: str, *, is_commit: bool
) -> Transaction:
    """A transaction with one partition whose end is decided and not carried out."""
    return Transaction(
        name,
        producer_id,
        epoch,
        timeout_ms=60_000,
        state=State.PREPARE_COMMIT if is_commit else State.PREPARE_ABORT,
        partitions=frozenset({TopicPartition(topic, 0)}),
        start_ms=1_700_000_000_000,
        last_update_ms=1_700_000_000_000,
    )


def append_state(data: Path, transaction: Transaction) -> None:
    """Put a record at the end of the log that the transactional id belongs to."""
    topic = "__transaction_state"
    count = len(list(data.glob(f"{topic}-*")))
    index = partition_for(transaction.transactional_id, count)
    (path,) = sorted((data / f"{topic}-{index}").glob("*.log"))
    content = path.read_bytes()
    end = next_offset = 0
    for position, header in headers(content):
        if header.size + position <= len(content) and header.count:
            end, next_offset = position + header.size, header.next_offset
    batch = encode_batch([encode(transaction, 2)], transaction.last_update_ms)
    batch[:_OFFSET_SIZE] = next_offset.to_bytes(_OFFSET_SIZE)
    path.write_bytes(content[:end] + batch)
