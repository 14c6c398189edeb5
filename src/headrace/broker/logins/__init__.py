"""The logins of clients, of other nodes, and of this node at others."""
