"""What operators see.

* `figures`: what operators see of groups
* `standings`: the same of single messages
* `views`: what operators see of one moment: groups with their members, what waits
* `waiting_figures`: what operators see of what waits for its time
"""
