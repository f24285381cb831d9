"""What is asked of the GPUs whether or not it could start at once, and what will be."""
