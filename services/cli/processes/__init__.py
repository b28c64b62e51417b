"""Commands that run services, and what they start with.

admin.py         `tandem serve admin`: the service in the foreground
check.py         `tandem check`: is the cluster well? One line and an exit code
gateway.py       `tandem serve gateway`: the service in the foreground
metasync.py      `tandem serve metasync`: the service in the foreground
names.py         `tandem serve names`: RocketMQ's name server in the foreground
node_log.py      the logs of several services as one
replicator.py    `tandem serve replicator`: the service in the foreground
serve.py         `tandem serve`, whose verbs run services
serving.py       what services tell programs when they serve
settings.py      `tandem settings`
start_settings.py    the settings that services start with, from the options of their commands
store.py         `tandem serve store`: the service in the foreground
together.py      several services of a node in one process, for `tandem up`
up.py            `tandem up`: a whole node, or two, in one terminal
"""
