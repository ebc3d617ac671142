"""The node's GPUs: which there are, who may use which, and whether somebody else does."""

from worker.gpus.cards import Cards, Declared, Nvml, State, Use
from worker.gpus.gauge import Gauge, gauging
from worker.gpus.leases import Gpus
from worker.gpus.watch import Watch, watching

__all__ = ["Cards", "Declared", "Gauge", "Gpus", "Nvml", "State", "Use", "Watch", "gauging", "watching"]
