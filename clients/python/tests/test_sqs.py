from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from fakes import FakeSqs

from tidegate_consumer.sqs import Message, Queue


@pytest.fixture
def queue(sqs_address: str) -> Iterator[Queue]:
    boto = boto3.client(
        "sqs",
        endpoint_url=sqs_address,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )
    yield Queue(boto, f"{sqs_address}/000000000000/work")
    boto.close()


def receive_all(queue: Queue) -> list[Message]:
    return [message for most in (10, 11, 5) for message in queue.receive(most, 0, 30)]


def test_ten_messages_at_a_time_are_received_deleted_and_kept(queue: Queue, sqs: FakeSqs) -> None:
    for index in range(25):
        sqs.send(f"body {index}").receive_count = 6
    messages = receive_all(queue)
    assert [message.body for message in messages] == [f"body {index}" for index in range(25)]
    assert {message.receive_count for message in messages} == {7}
    queue.set_visibility(messages, 40)
    assert [stored.visibility for stored in sqs.messages] == [[30, 40]] * 25
    queue.delete(messages)
    assert all(stored.is_deleted for stored in sqs.messages)


def test_what_is_refused_is_logged(queue: Queue, sqs: FakeSqs, caplog: pytest.LogCaptureFixture) -> None:
    stored = sqs.send("body")
    queue.delete([Message("first", "refused", "body", 1), Message(stored.message_id, f"{stored.message_id}/1", "", 1)])
    assert stored.is_deleted
    assert caplog.messages == ["failed to delete message first: not now"]


def test_a_call_that_fails_is_logged(queue: Queue, sqs: FakeSqs, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def delete_message_batch(self, **_: object) -> object:
            raise OSError("no network")

        change_message_visibility_batch = delete_message_batch

    Queue(Broken(), "http://127.0.0.1:1/0/work").delete([Message("first", "handle", "body", 1)])
    assert caplog.messages == ["failed to delete 1 messages: no network"]
