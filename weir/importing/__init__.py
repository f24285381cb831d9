"""Other schedulers' queues as a tree of Weir's. Text in, what would be made and what has no place out."""
