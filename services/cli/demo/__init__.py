"""`tandem demo`: real messages, a store that is killed while it takes them, and the proof that nothing is lost.

::

    command.py    the command and its options
    story.py      the steps, in order: begin here
    material.py   what is sent: package records of this machine, files of the Python standard library
    ledger.py     what was sent, and where its receipt says it lies
    producer.py   sends, one by one, in batches, in a stream
    readers.py    a consumer group with its own offsets
    proof.py      compares what came back with the ledger
    child.py      the store as a process that can be killed
"""
