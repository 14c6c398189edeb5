"""Which changes of a Protobuf schema keep its readers working, by Confluent's rules."""

from headrace.registry.compatibility.protobuf.comparing import differences, incompatibilities
from headrace.registry.compatibility.protobuf.differences import Difference, Kind

__all__ = ["Difference", "Kind", "differences", "incompatibilities"]
