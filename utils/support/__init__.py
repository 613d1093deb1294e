"""What the reference implementations rely on, and no notebook builds: checkpoints, files, checks, data, plots."""
