"""What pages show of a plan that nobody carries out: asked for by a page, planned by a worker, kept."""
