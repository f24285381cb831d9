"""Learned run times: what is known of work, and what its like took before, as quantiles. Pure: no Django, no
clock, no dice, no I/O."""
