"""The `tandem` command: what a person has in the hand.

    entry.py        what a terminal runs; where only the client is installed it says what installs the rest
    main.py         the command, and the one place where an error becomes a line and an exit code
    commands.py     where each command is; it is imported when it is asked for
    plain_values.py values that are taken as they are, without pydantic
    examples.py     examples at the end of each command's help
    completion.py   `tandem completion`: words for shells
    reference.py    docs/cli.md, generated from the help

One command a module, in rooms; each maps its own modules::

    processes/      running services
    messaging/      sending, reading, measuring
    files/          a store's directory: looking, comparing, rebuilding, exporting
    pair/           a master and its slaves
    access/         users and roles
    nouns/          topics, groups, messages, nodes and jobs, most by the admin service
    demo/           `tandem demo`
    talk/           what all of them share: options, connections, output, failures

`tandem --help` must be quick: nothing here imports grpc, protobuf, rich or the store at module level; commands import
what they need when they run.
"""
