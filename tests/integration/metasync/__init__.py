"""Metadata services as real processes, beside each other and against what disturbs them."""
