"""What all commands share: options, connections, output, failures.

connection.py       connections of commands to services
contexts.py         clusters by name, in a file of the user's
discovery.py        one address of a cluster, from which the rest is found
failures.py         what can go wrong, told in one line
listener.py         what listens where no service of ours answers
moments.py          times as people write and read them; inside they are milliseconds since 1970
options.py          options that several commands have
output.py           what commands print
phases.py           how far a job is that has several phases
tls_diagnosis.py    why a server that is there does not answer
"""
