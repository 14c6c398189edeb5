"""Replication of partitions: leaders, followers, in-sync replicas and the high watermark."""
