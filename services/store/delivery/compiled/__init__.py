"""Delivery's part of the compiled core.

* `handle_codec`: the texts of receipt handles
* `fact_codec`: facts of the journal
"""
