"""Delivery's part of the compiled core: handle_codec, the texts of receipt handles."""
