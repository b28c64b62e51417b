"""What a user would pick instead. Each peer is optional; one that cannot be had raises Unavailable with the remedy."""
