"""The admin service: asks the others over gRPC and puts together what they say, for people. It owns nothing.

::

    __main__.py   the start-up: `python -m tandemmq.admin`
    settings.py   its settings
    service.py    tandemmq.admin.v1.Admin: each call to the part that knows
    access.py     what a caller must be allowed for each call
    errors.py     what can go wrong
    users.py      who may do what, as the access file says
    metrics.py    lag of groups, and which nodes answer, for Prometheus
    cluster/      nodes and brokers, how they are reached and how they are; promotion
    catalogue/    topics and groups: lists of them, and changes
    books/        what those lists are made of: tables of metasync, ends of queues
    consuming/    how far groups are, what they do now, and moving their offsets
    messages/     finding, reading, following and sending messages
    jobs/         audits and rebuilds, each in a process of its own
    history/      the last hour, collected in the background
    actions/      who did what
    bundle/       a zip file for whoever helps
    console/      the same over HTTP, with pages for a browser

What changes something goes to the broker's master. A service that does not answer makes an answer poorer, never an
error, unless the call cannot do without it.
"""
