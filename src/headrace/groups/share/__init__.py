"""Share groups (KIP-932): members that may read the same partition."""
