"""Clusters of RocketMQ brokers and ours, under name servers of both."""
