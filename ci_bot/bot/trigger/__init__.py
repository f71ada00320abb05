"""What started a run, and what is asked for: the event, the command in a comment, the inputs."""
