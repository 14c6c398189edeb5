"""The partition of an internal topic for a group, a transactional id or a share key."""


def partition_for(key: str, count: int) -> int:
    """Return Kafka's choice: the absolute value of Java's string hash, modulo the partitions.

    Java counts UTF-16 units in 32 bits with a sign; the one value without an absolute value
    counts as 0.
    """
    number = java_hash(key)
    return 0 if number == -(1 << 31) else abs(number) % count


def java_hash(text: str) -> int:
    units = text.encode() if text.isascii() else memoryview(text.encode("utf-16-le")).cast("H")
    number = 0
    for unit in units:
        number = (31 * number + unit) & 0xFFFFFFFF
    return number - (1 << 32) if number >> 31 else number
