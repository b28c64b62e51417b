"""Who may call `tandemmq.node.v1.Node`: there is no secret in its answers, but the settings and paths of a machine."""

from tandemmq.common.access.needs import Action
from tandemmq.common.access.rules import Rules, ability

RULES: Rules = {"Describe": ability(Action.VIEW, Action.INTERNAL)}
