"""Learning to set the engine's policy: the simulator as an environment, a training script, and a judge."""
