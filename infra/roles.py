"""Prints, for each function of a stack, what its role allows and which calls its log names, as one JSON object.

The functions log their calls when `LogLevel` has `tidegate_aws::calls=debug`. Asked for at `AWS_ENDPOINT_URL`, with boto3.
"""

import json
import sys

import boto3

TARGET = "tidegate_aws::calls"


def role_of(function):
    arn = boto3.client("lambda").get_function_configuration(FunctionName=function)["Role"]
    return arn.rsplit("/", 1)[-1]


def statements_of(role):
    iam = boto3.client("iam")
    for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        if isinstance(document, str):
            document = json.loads(document)
        yield from document["Statement"]


def calls_of(function):
    pages = boto3.client("logs").get_paginator("filter_log_events")
    calls = set()
    for page in pages.paginate(logGroupName=f"/aws/lambda/{function}"):
        for event in page["events"]:
            # A log event may hold several lines.
            for line in event["message"].splitlines():
                if TARGET not in line:
                    continue
                call = json.loads(line)
                calls.add((call["action"], call["resource"]))
    return sorted(calls)


stack = sys.argv[1]
functions = {}
for name in ["master", "emitter", "handler"]:
    function = f"{stack}-{name}"
    functions[name] = {"statements": list(statements_of(role_of(function))), "calls": calls_of(function)}
json.dump(functions, sys.stdout)
