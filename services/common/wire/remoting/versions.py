"""The number `version` of a header: the place of a release in the list of RocketMQ's `MQVersion`.

There, every release is followed by its snapshot of the next; so the same number of steps lies between neighbours.
"""

V3_0_7_SNAPSHOT = 28
"""From here on a client can be asked to reset its offsets."""
V3_0_11 = 37
"""From here on REGISTER_BROKER has its present body."""
V3_1_8_SNAPSHOT = 56
"""From here on a client can be asked how it runs, and to consume a message."""
V4_9_3 = 399
"""Up to here some fields are added after a request was signed."""
V4_9_4 = 401
"""From here on clients want standard JSON in a route."""
V4_9_7 = 407
V4_9_8 = 409
V5_0_0 = 413
"""From here on a compressed registration has a part for static topics."""
V5_3_1 = 475
V5_3_2 = 477
V5_3_3 = 479

OUR_VERSION = V5_3_2
"""What our headers say. Clients demand at least 4.1 for SQL filters, name servers at least 3.0.11 for registrations."""
