"""A zip file for whoever helps.

* `bundle`: what admin knows of the cluster; no bodies, no secrets
* `metrics_pages`: the metrics of a node's services, as their endpoints show them
* `zip_stream`: a zip file that is sent while it is made
"""
