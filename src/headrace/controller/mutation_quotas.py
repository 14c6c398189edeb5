"""Quotas of controller mutations (KIP-599): partitions that clients create and delete.

Each owner of a quota has a bucket of tokens on the active controller, and each created or deleted
partition takes one. A request in progress may leave the bucket below zero. After that, newer
versions of the requests are rejected with THROTTLING_QUOTA_EXCEEDED until it is filled again, and
clients of older versions are held back. A new active controller begins with full buckets.
"""

from collections import OrderedDict

from headrace.metadata.image import MetadataImage
from headrace.protocol.api_keys import ApiKey
from headrace.quotas.precedence import CONTROLLER_MUTATION_RATE, Limits, Quotas
from headrace.quotas.rates import TokenBucket, Windows
from headrace.quotas.throttling import Mutations
from headrace.security.principals import Caller

STRICT_FROM = {
    int(ApiKey.CREATE_TOPICS): 6,
    int(ApiKey.DELETE_TOPICS): 5,
    int(ApiKey.CREATE_PARTITIONS): 3,
}
"""The requests with mutations, and the first version of each with the error."""

_BUCKETS_MAX = 10_000


class MutationQuotas:
    """The buckets of all owners of such quotas."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._buckets: OrderedDict[tuple[str, str], TokenBucket] = OrderedDict()
        self._followed: Quotas = {}
        self._limits = Limits({}, CONTROLLER_MUTATION_RATE)

    def of(self, image: MetadataImage, key: int, version: int, caller: Caller) -> Mutations | None:
        """Return the quota for one request of a client; None if it has none."""
        if key not in STRICT_FROM:
            return None
        if image.client_quotas is not self._followed:
            self._followed = image.client_quotas
            self._limits = Limits(image.client_quotas, CONTROLLER_MUTATION_RATE)
        applied = self._limits.find(caller.principal.name, caller.client_id)
        if applied is None:
            return None
        bucket = self._bucket(applied.user, applied.client_id)
        return Mutations(bucket, applied.limit, is_strict=version >= STRICT_FROM[key])

    def _bucket(self, user: str, client_id: str) -> TokenBucket:
        """Return a bucket; beyond a maximum the one that was used least recently is forgotten."""
        key = user, client_id
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) >= _BUCKETS_MAX:
                self._buckets.popitem(last=False)
            bucket = self._buckets[key] = TokenBucket(self._windows)
        self._buckets.move_to_end(key)
        return bucket
