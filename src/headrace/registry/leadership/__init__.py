"""The election of the leader, and the forwarding of writes to it."""
