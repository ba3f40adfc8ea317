"""Runs MiniStack until the program that started it is gone.

Standard input is the lifeline: nothing is ever written to it, and it closes when the starter ends, however it ends.
"""

import os
import signal
import sys
import threading


def stop_when_the_lifeline_closes():
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


threading.Thread(target=stop_when_the_lifeline_closes, daemon=True).start()

from ministack.app import main  # noqa: E402  (the lifeline comes first: the import takes seconds)

sys.argv[1:] = []
main()
