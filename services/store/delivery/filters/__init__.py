"""Filters: which messages of a topic a subscription is for. No I/O, no clock.

* `subscriptions`: the filter of a subscription, compiled once
* `selection`: what every filter can say
* `tagged`: tags: `*`, `a || b`
* `sql`: conditions over properties: a part of SQL-92, as RocketMQ has it
* `grammar`: the language of these conditions, for the parser library
* `conditions`: a condition as functions, built from the leaves up; what it refuses
* `operands`: what stands in a comparison: properties, numbers, texts, truth values
* `comparisons`: `=`, `<`, IN, LIKE and the like, as functions
* `patterns`: LIKE without backtracking
"""
