"""The contract between gateways and stores, `tandemmq.broker.v1`; what it means is done by the store's fronts."""
