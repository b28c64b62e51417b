"""Delivery's part of the compiled core.

* `handle_codec`: the texts of receipt handles, and which of those that are given back count
* `fact_codec`: facts of the journal
"""
