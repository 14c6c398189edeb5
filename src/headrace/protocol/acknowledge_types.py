"""The acknowledgement types of share groups, with the numbers of Kafka's requests (KIP-932)."""

from enum import IntEnum


class AcknowledgeType(IntEnum):
    """A gap is an offset without a record; renewals need ShareAcknowledge v2."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
