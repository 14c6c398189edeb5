"""What a member of a share group says of a record, by the numbers of Kafka's requests (KIP-932)."""

from enum import IntEnum


class AcknowledgeType(IntEnum):
    """A gap is an offset at which the member found no record; renewals want ShareAcknowledge v2."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
