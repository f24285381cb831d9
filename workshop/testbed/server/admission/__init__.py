"""What decides whether a valid object may be stored: policies in CEL, quotas of namespaces."""
