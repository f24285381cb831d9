"""What makes objects live: Jobs get pods, pods get nodes and run, garbage goes."""
