"""A node on one machine: its services as child processes of one supervisor, for `tandem up`.

::

    ports.py        which ports a node's services have
    plan.py         which services run, each with which settings
    processes.py    which of them share a process
    restart.py      when a service that died is started again, and when that is given up; no I/O
    child.py        one process: its events, its log lines, its end
    supervisor.py   keeps all of them alive, and stops them in order
    errors.py       what keeps a node from running

The services are started as commands and are known by their names and settings only: nothing of theirs is imported here.
"""
