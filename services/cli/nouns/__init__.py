"""Nouns, then verbs: the commands that ask the admin service.

::

    calls.py       the connection to it, options, answers as JSON
    names.py       names for a shell that completes
    figures.py     numbers of a node that several commands show
    group_view.py  what stores see of groups, in words; message_standing.py: of single messages
    lone_store.py  topics and groups made by a store that runs alone
    cluster.py     tandem cluster show|waiting|actions|bundle
    node.py        tandem node list|config
    topic.py       tandem topic list|offsets|show|create|update|delete
    group.py       tandem group list|show|members|progress|reset|create|update|delete; group_settings.py: its settings,
                   retry_waits.py: the waits between deliveries
    client.py      tandem client threads|try
    message.py     tandem message find|query|view|tail|send|resend; message_trace.py: trace
    job.py         tandem job start|list|show|watch|cancel

Which of RocketMQ's mqadmin commands each is, is in docs/mqadmin.md.
"""
