"""What a running worker says and does: its answer, its log, its processes, its end."""
