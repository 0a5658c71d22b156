"""
The site of ``mnemoscope serve``: where people decide, answer customers, and look after the layer.

Pages of HTML that need no script, over the queries of the command line. Needs the extra `console`.
"""

from .application import build_console
from .connections import PunctualLoop, PunctualProtocol
from .entrance import Entrance, ProxySignIn
from .sessions import OneTimeToken, Right, Sessions, SignedIn
from .site import NotDoneError, Site, Visit

__all__ = [
    "Entrance",
    "NotDoneError",
    "OneTimeToken",
    "ProxySignIn",
    "PunctualLoop",
    "PunctualProtocol",
    "Right",
    "Sessions",
    "SignedIn",
    "Site",
    "Visit",
    "build_console",
]
