"""What services tell Prometheus.

* `metrics_endpoint`: the endpoint
* `service_metrics`: what the collectors of all services share
* `call_metrics`: the calls of RocketMQ's clients
* `distribution`: histograms in plain numbers, which the hot paths add to
"""
