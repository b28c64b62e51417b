"""The admin service: asks the others over gRPC and puts together what they say, for people. It owns nothing.

::

    __main__.py        the start-up: `python -m tandemmq.admin`
    settings.py        its settings; node_addresses.py: which nodes there are
    nodes.py           one Node a node: the stubs of its services
    brokers.py         which nodes are one broker, and which of them is its master
    channels.py        how the others are reached

    cluster.py         all nodes with roles, offsets, lag, disk, versions; problems.py: what is wrong, in words
    configuration.py   their settings
    topics.py          topics with the ends of their queues; listing.py: names in pages, topic_kinds.py: what they say
    groups.py          subscription groups; progress.py: how far they are, and their lag
    views.py           what the masters' stores see: groups at work, what waits
    usable.py          what was just made is known to its store
    merging.py         changes of a part of a topic or group
    resets.py          moving a group's offsets
    books.py           what lists are made of: tables.py, kept by mirror.py as metasync has them, and queue_ends.py
    store_times.py     how old messages are
    messages.py        finding and sending messages; reading.py: those of several queues and brokers as one,
                       message_filter.py: which of them are wanted
    postponed.py       of those that wait for their time; standings.py: which groups have not dealt with them
    message_ways.py    who sent and who consumed a message, as its clients told
    tail.py            messages as they arrive
    dead_letters.py    messages that came to nothing, sent again
    role_changes.py    promotion, and whom a node follows
    jobs.py            audits and rebuilds: job_command.py what is run, job_process.py the process, job_files.py what is
                       kept of it
    bundle.py          a zip file for whoever helps; zip_stream.py, metrics_pages.py
    actions.py         who did what: recording.py puts calls into it, line_file.py is the file
    users.py           who may do what, as the access file says
    metrics.py         lag of groups, and which nodes answer, for Prometheus; collected.py: found out in the background
    history.py         the hour behind us; history_readings.py: what a round says for it, send_latency.py: how
                       long sends took in it, history_answer.py: as told

    service.py         tandemmq.admin.v1.Admin: each call to the part that knows
    access.py          what a caller must be allowed for each call
    errors.py          what can go wrong
    console/           the same over HTTP, with pages for a browser

What changes something goes to the broker's master. A service that does not answer makes an answer poorer, never an
error, unless the call cannot do without it.
"""
