"""SQL over the lake's tables by HTTP."""
