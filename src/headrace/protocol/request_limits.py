"""How much one request may ask for, beyond `socket.request.max.bytes`.

Only records are large. A frame full of tiny things grows in memory when it is decoded and, with
one loop for all clients, keeps everyone waiting: 900,000 names take 6 MB to send and many seconds
to answer (docs/decisions/0009).
"""

REQUEST_BYTES_MAX = 16 << 20
"""The largest request that carries no records."""

ELEMENTS_MAX = 50_000
"""The most topics, partitions, names and the like in one request, all taken together."""

TAGS_MAX = 32
"""The most tagged fields in one structure. Kafka's have a handful; those that we do not know are
only passed over, yet a frame full of them would be many seconds of passing over."""
