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
from ministack.core import iam_actions  # noqa: E402
from ministack.services import lambda_svc  # noqa: E402

action_of = iam_actions.extract_iam_action


def single_action_of(*args, **kwargs):
    """On AWS a batch call of SQS or SNS needs the permission of the single call; MiniStack asks for one that is none."""
    action = action_of(*args, **kwargs)
    return action.removesuffix("Batch") if action and action.startswith(("sqs:", "sns:")) else action


iam_actions.extract_iam_action = single_action_of

limit_of = lambda_svc._sqs_esm_concurrency


def numeric_limit_of(esm, *args, **kwargs):
    """On AWS a parameter of type Number is a number where a property asks for one; MiniStack leaves it a text, and polls no more."""
    scaling = esm.get("ScalingConfig") or {}
    if "MaximumConcurrency" in scaling:
        esm = {**esm, "ScalingConfig": {**scaling, "MaximumConcurrency": int(scaling["MaximumConcurrency"])}}
    return limit_of(esm, *args, **kwargs)


lambda_svc._sqs_esm_concurrency = numeric_limit_of

sys.argv[1:] = []
main()
