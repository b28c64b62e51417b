"""The `tandem` command: what a person has in the hand.

One command a module; what they share::

    main.py         the list of commands, and the one place where an error becomes a line and an exit code
    options.py      options that several commands have
    output.py       tables and text for people, JSON for programs
    connection.py   the channel to a store
    failures.py     what can go wrong, in one line each
    moments.py      times, as people write and read them
    node_log.py     the logs of several services as one
    messages.py     a stored message as text and as JSON
    reference.py    docs/cli.md, generated from the help
    demo/           `tandem demo`

`tandem --help` must be quick: nothing here imports grpc, protobuf, rich or the store at module level; commands import
what they need when they run.
"""
