"""The HTTP side: connections, paths, answers, watches, discovery, tables."""
