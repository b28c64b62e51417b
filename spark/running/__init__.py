"""Running tasks on Spark or without it: Java, sessions, what is sent to workers.

class_archive.py    Spark's Java classes, prepared for a quick start
driver_java.py      the driver's Java, started and ended by what PySpark does not promise
java.py             finding a Java runtime for Spark
progress.py         how far a job is, phase by phase, for people and for Prometheus
runner.py           running tasks
shipping.py         our own code for a cluster whose Python workers have not installed it
unpacking.py        how a worker of a cluster comes to our package
user_cache.py       a place for what can be made again
warming.py          loading what tasks are made of, once
worker_daemon.py    the process from which Spark forks its Python workers, with our imports loaded
"""
