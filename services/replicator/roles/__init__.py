"""A slave becomes the master, and who is told.

* `promotion`: what is checked, in which order, and what is done
* `claim`: whether it may, from what the others said
* `quorum`: how many slaves must agree
* `fencing`: tells an old master that it was replaced
* `signpost`: where clients find the master, for our store's refusals
"""
