"""What people send, before anything looks it up: text, instants, numbers, depth and size.

Pages, reports and API read through here, and nothing here imports them. The bounds are listed in
``docs/api.md``.
"""
