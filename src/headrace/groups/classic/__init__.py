"""The classic group protocol (KIP-62): a member leads the group and assigns its partitions."""
