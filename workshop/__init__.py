"""What Weir is built and tried with, and does not ship: the product imports nothing of it."""
