"""How far groups are, what they do now, and moving their offsets.

* `progress`: how far groups are, and their lag: arithmetic on offsets
* `standings`: where single messages stand in groups that have not dealt with them
* `views`: what the masters' stores see: groups at work, what waits
* `resets`: moving a group's offsets
"""
