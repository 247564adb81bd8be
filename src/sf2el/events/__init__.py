"""What happened to the features and to the memory: typed events, and the text that says each to people."""

from sf2el.events.kinds import DETAILS, FIELDS, KINDS, Event, EventKind, Events, Happened
from sf2el.events.log import EventLog
from sf2el.events.text import expert_name, expert_number, rounded_up, text_of

__all__ = [
    "DETAILS",
    "FIELDS",
    "KINDS",
    "Event",
    "EventKind",
    "EventLog",
    "Events",
    "Happened",
    "expert_name",
    "expert_number",
    "rounded_up",
    "text_of",
]
