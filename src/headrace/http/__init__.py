"""The kit for HTTP products: listeners, routes, access, errors, metrics, pages and streams."""
