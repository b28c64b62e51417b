"""`tandem demo`: real messages, processes that are killed meanwhile, and the proof that nothing is lost.

::

    command.py     the command and its options
    pair_story.py  two nodes, step by step: begin here
    story.py       one store alone (--single)
    steps.py       what both have in common
    teller.py      how it is told: steps for people, JSON lines for programs
    material.py    what is sent: package records of this machine, files of the Python standard library
    ledger.py      what was sent, and where its receipt says it lies
    producer.py    sends, one by one, in batches, in a stream
    readers.py     a consumer group with its own offsets
    proof.py       compares what came back with the ledger, and files with files
    child.py       a command as a process, on `tandemmq.node`; one store so
    pair.py        `tandem up --slave --processes` so, and its services, which can be killed
"""
