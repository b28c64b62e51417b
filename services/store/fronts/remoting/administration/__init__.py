"""What RocketMQ's tools ask a broker: mqadmin, the dashboard, the exporter; and Java slaves of their master.

Answers have fastjson's form where tools read no other. What has no meaning here is refused by name.

::

    rules.py           what these parts need to know beside the front's rules
    topic_admin.py     topics: made, changed, deleted, listed; where their queues stand;
                       attribute_changes.py: changes of their attributes
    group_admin.py     groups: made, changed, deleted, listed
    consumption.py     how far groups are, who consumes, resets
    connections.py     who is connected
    broker_status.py   the broker itself: numbers, settings, what the store does by itself
    traffic_history.py how many messages came in and went out lately
    tables.py          whole tables, for Java slaves
    sliced.py          bodies of long tables, made in slices
    parts.py           all of them, put together
"""
