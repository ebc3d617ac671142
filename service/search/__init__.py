"""The search for the first bad commit. Pure: the same inputs give the same answer, nothing is read or written."""

from service.search.ahead import likely_next
from service.search.choice import next_probes, redundant
from service.search.conclusion import Conclusion, Contradiction, Found, Searching, Suspects, conclusion
from service.search.evidence import Evidence, Observation, Verdict
from service.search.graph import Range
from service.search.known import known
from service.search.noise import UNKNOWN, Noise

__all__ = [
    "Conclusion",
    "Contradiction",
    "UNKNOWN",
    "Evidence",
    "Found",
    "Noise",
    "Observation",
    "Range",
    "Searching",
    "Suspects",
    "Verdict",
    "conclusion",
    "known",
    "likely_next",
    "next_probes",
    "redundant",
]
