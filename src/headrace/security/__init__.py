"""Who is who, and how it is proven: mechanisms without sockets, for both ends of a connection."""
