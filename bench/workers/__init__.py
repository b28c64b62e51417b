"""What `bench.worker` does inside its own process."""
