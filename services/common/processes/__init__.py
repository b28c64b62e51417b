"""What concerns a whole process, and processes that we start.

* `command`: `python -m tandemmq.<service>`: options, and an error as one line
* `process`: open files, malloc thresholds
* `memory`: how much memory there is
* `garbage`: no pause for garbage collection grows with what is alive
* `started_pool`: thread pools whose threads run before there is work
* `together`: several services in one process
* `child_process`: processes that we start, which end when we do
"""
