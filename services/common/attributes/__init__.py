"""Which attributes topics and groups may have, and with which values.

* `topic_attributes`: those of topics that RocketMQ knows
* `topic_retention`: a topic's own retention
* `group_attributes`: those of groups that mean something here
"""
