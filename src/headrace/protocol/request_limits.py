"""Limits of one request, beyond `socket.request.max.bytes`.

Only records are large. A frame full of tiny elements grows in memory when it is decoded and, with
one loop for all clients, delays all of them: 900,000 names take 6 MB to send and many seconds
to answer (docs/internals/decisions/0009).
"""

REQUEST_BYTES_MAX = 16 << 20
"""Maximum size of a request without records."""

ELEMENTS_MAX = 50_000
"""Maximum number of topics, partitions, names and other elements of one request, in total."""

TAGS_MAX = 32
"""Maximum number of tagged fields in one structure. Kafka's have a handful. Unknown ones are only
skipped, but a frame full of them would take many seconds."""
