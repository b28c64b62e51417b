"""Nouns, then verbs: the commands that ask the admin service.

::

    calls.py       the connection to it, options, answers as JSON
    names.py       names for a shell that completes
    figures.py     numbers of a node that several commands show
    cluster.py     tandem cluster show|actions|bundle
    node.py        tandem node list|config
    topic.py       tandem topic list|show|create|update|delete
    group.py       tandem group list|show|progress|reset|create|update|delete
    message.py     tandem message find|tail|send|resend
    job.py         tandem job start|list|show|watch|cancel

Which of RocketMQ's mqadmin commands each is, is in docs/mqadmin.md.
"""
