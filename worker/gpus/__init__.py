"""The node's GPUs: which there are, who may use which, and whether somebody else does."""

from worker.gpus.cards import Cards, Declared, Nvml, Use
from worker.gpus.leases import Gpus
from worker.gpus.watch import Watch, watching

__all__ = ["Cards", "Declared", "Gpus", "Nvml", "Use", "Watch", "watching"]
