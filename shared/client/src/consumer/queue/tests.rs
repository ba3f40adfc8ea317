use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::time::Instant;

use super::fake::FakeQueue;
use super::*;
use crate::consumer::fakes::{FakeApi, Scripted, at, body, body_with, seconds, without_token};

type Text = Result<Option<String>, String>;
type Shared<T> = Arc<Mutex<T>>;

struct World {
    api: Arc<FakeApi>,
    queue: Arc<FakeQueue>,
}

impl World {
    fn new() -> Self {
        Self { api: FakeApi::new(), queue: FakeQueue::new() }
    }

    fn consumer<F>(&self, work: impl Fn(Event, Lease) -> F + Send + Sync + 'static) -> QueueConsumer
    where
        F: Future<Output = Text> + Send + 'static,
    {
        QueueConsumer::with(self.api.calls(), Arc::clone(&self.queue) as Arc<dyn Queue>, Work::new(work))
    }
}

/// Work that takes so long, and the events that it was called with.
fn taking(time: Duration) -> (Shared<Vec<String>>, impl Fn(Event, Lease) -> Boxed<'static, Text>) {
    let worked_on = Shared::<Vec<String>>::default();
    let noted = Arc::clone(&worked_on);
    let work = move |event: Event, _: Lease| -> Boxed<'static, Text> {
        noted.lock().unwrap().push(event.event_id);
        Box::pin(async move {
            sleep(time).await;
            Ok(None)
        })
    };
    (worked_on, work)
}

async fn never(_: Event, _: Lease) -> Text {
    panic!("it was worked on")
}

#[tokio::test(start_paused = true)]
async fn events_are_worked_on_released_and_deleted() {
    let world = World::new();
    for index in 0..4 {
        world.queue.send(body(index));
    }
    let consumer = world.consumer(|event, _| async move {
        match event.index {
            1 => Ok(Some("9 rows".to_owned())),
            2 => Err("no such shop".to_owned()),
            3 => panic!("index out of bounds"),
            _ => Ok(None),
        }
    });
    consumer.run_until(sleep(seconds(1))).await;
    let mut released = world.api.released();
    released.sort_by_key(|entry| entry["token"].to_string());
    assert_eq!(
        released,
        [
            json!({"token": "tok.0", "outcome": "succeeded"}),
            json!({"token": "tok.1", "outcome": "succeeded", "result": "9 rows"}),
            json!({"token": "tok.2", "outcome": "failed", "error": "no such shop"}),
            json!({"token": "tok.3", "outcome": "failed", "error": "the work panicked: index out of bounds"}),
        ]
    );
    assert!(world.queue.deleted_at().iter().all(Option::is_some));
}

#[tokio::test(start_paused = true)]
async fn a_message_is_deleted_only_after_its_release() {
    let world = World::new();
    world.api.takes(seconds(3));
    world.queue.send(body(0));
    world.consumer(taking(seconds(1)).1).run_until(sleep(seconds(10))).await;
    let released_at = seconds(1) + limits::LINGER;
    assert_eq!(world.api.releases(), [(released_at, 1)]);
    assert_eq!(world.queue.deleted_at(), [Some(released_at + seconds(3))]);
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_release_failed_comes_again_and_is_released_without_working_again() {
    let world = World::new();
    world.api.script([Scripted::Refused(401)]);
    world.queue.send(body(0));
    let (worked_on, work) = taking(Duration::ZERO);
    let consumer = world.consumer(work);
    let running = tokio::spawn(consumer.run_until(sleep(seconds(70))));
    sleep(seconds(50)).await;
    assert_eq!((world.queue.deleted_at(), world.api.releases().len()), (vec![None], 1));
    running.await.unwrap();
    assert_eq!((world.api.releases().len(), worked_on.lock().unwrap().len()), (2, 1));
    assert_eq!(world.queue.deleted_at(), [Some(seconds(60) + limits::LINGER)]);
}

#[tokio::test(start_paused = true)]
async fn a_later_delivery_of_a_finished_event_is_released_with_its_own_token() {
    let world = World::new();
    world.api.status("tok.0", "reclaimed");
    world.queue.send(body(0));
    world.queue.send(body_with(0, json!({"attempt": 2, "token": "tok.later"})));
    let (worked_on, work) = taking(seconds(1));
    world.consumer(work).run_until(sleep(seconds(5))).await;
    assert_eq!(worked_on.lock().unwrap().len(), 1);
    let tokens: Vec<_> = world.api.released().iter().map(|entry| entry["token"].clone()).collect();
    assert_eq!(tokens, ["tok.0", "tok.later"]);
    assert!(world.queue.deleted_at().iter().all(Option::is_some));
}

#[tokio::test(start_paused = true)]
async fn a_failed_event_is_worked_on_again_in_a_later_delivery_alone() {
    let world = World::new();
    world.queue.send(body(0));
    world.queue.send(body(0));
    world.queue.send(body_with(0, json!({"attempt": 2, "token": "tok.redriven"})));
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let consumer = world.consumer(move |event, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { if event.attempt == 1 { Err("the shop does not answer".to_owned()) } else { Ok(None) } }
    });
    consumer.concurrency(1).run_until(sleep(seconds(5))).await;
    assert_eq!(count.load(Ordering::SeqCst), 2);
    let released: Vec<_> =
        world.api.released().iter().map(|entry| (entry["token"].clone(), entry["outcome"].clone())).collect();
    let expected = [("tok.0", "failed"), ("tok.0", "failed"), ("tok.redriven", "succeeded")];
    assert_eq!(released, expected.map(|(token, outcome)| (json!(token), json!(outcome))));
}

#[tokio::test(start_paused = true)]
async fn events_without_a_token_need_no_call() {
    let world = World::new();
    world.queue.send(without_token(0));
    world.queue.send(without_token(1));
    world.consumer(taking(seconds(100)).1).run_until(sleep(seconds(101))).await;
    assert_eq!((world.api.released().len(), world.api.extended().len()), (0, 0));
    assert!(world.queue.deleted_at().iter().all(Option::is_some));
    assert_eq!(world.queue.deletes(), [2]);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_event_or_failed_without_a_token_stays() {
    let world = World::new();
    world.queue.send("hello");
    world.queue.send(json!({"type": "run.completed"}));
    world.queue.send(without_token(0));
    world.queue.send(body(1));
    let consumer = world.consumer(|event, _| async move {
        if event.token.is_none() { Err("it failed".to_owned()) } else { Ok(None) }
    });
    consumer.run_until(sleep(seconds(45))).await;
    let deleted: Vec<bool> = world.queue.deleted_at().iter().map(Option::is_some).collect();
    assert_eq!(deleted, [false, false, false, true]);
    for place in 0..3 {
        assert_eq!(world.queue.stored(place).visibility, [(seconds(0), seconds(60))]);
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_concurrency_are_worked_on() {
    let world = World::new();
    for index in 0..7 {
        world.queue.send(body(index));
    }
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let consumer = world.consumer(move |_, _| {
        let (now, seen) = (Arc::clone(&now), Arc::clone(&seen));
        async move {
            seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            sleep(seconds(10)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(None)
        }
    });
    let started = Instant::now();
    consumer.concurrency(3).run_until(sleep(seconds(21))).await;
    assert_eq!((most.load(Ordering::SeqCst), world.api.released().len()), (3, 7));
    assert_eq!(started.elapsed(), seconds(30)); // 3 + 3 + 1
    assert!(world.queue.receives().iter().all(|(_, wanted)| *wanted <= 3));
}

#[tokio::test(start_paused = true)]
async fn leases_and_messages_are_kept_while_the_work_goes_on() {
    let world = World::new();
    world.queue.send(body(0));
    let consumer = world.consumer(taking(seconds(50)).1).visibility(seconds(36));
    consumer.run_until(sleep(seconds(51))).await;
    let extended: Vec<Duration> = world.api.extended().into_iter().map(|(at, _)| at).collect();
    assert_eq!(extended, [seconds(20), seconds(40)]);
    let visibility = [0, 12, 24, 36, 48].map(|at| (seconds(at), seconds(36)));
    assert_eq!(world.queue.stored(0).visibility, visibility);
}

#[tokio::test(start_paused = true)]
async fn a_message_is_kept_invisible_while_its_release_is_on_its_way() {
    let world = World::new();
    world.api.script([Scripted::Refused(503); 5]);
    world.queue.send(body(0));
    let consumer = world.consumer(taking(Duration::ZERO).1).visibility(seconds(9));
    consumer.run_until(sleep(seconds(30))).await;
    let times: Vec<u64> = world.queue.stored(0).visibility.iter().map(|(at, _)| at.as_secs()).collect();
    assert_eq!(times, [0, 3, 6, 9, 12, 15]); // it is released after 15.5 s
    assert_eq!(world.queue.stored(0).receive_count, 1);
    assert!(world.queue.stored(0).deleted_at.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_stops_the_work_and_is_not_released() {
    let world = World::new();
    world.api.status("tok.0", "expired");
    world.queue.send(body(0));
    let consumer = world.consumer(|_, lease| async move {
        let done = lease.while_held(sleep(seconds(1_000))).await;
        done.map(|()| None).map_err(|lost| lost.to_string())
    });
    consumer.run_until(sleep(seconds(30))).await;
    assert_eq!(world.api.released().len(), 0);
    assert_eq!(world.queue.deleted_at(), [Some(seconds(20) + limits::LINGER)]);
    assert_eq!(world.api.extended().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_whose_lease_ended_in_the_queue_is_passed_over() {
    let world = World::new();
    world.api.status("tok.0", "expired");
    world.api.status("tok.1", "expired");
    world.api.status("tok.2", "not_yours");
    world.queue.send(body_with(0, json!({"lease_expires_at": at(-1)})));
    // Released by a consumer that was killed before it deleted the message.
    world.queue.send_received_before(body(1), 1);
    // Of another deployment: nobody knows whether its event comes again.
    world.queue.send_received_before(body(2), 1);
    world.consumer(never).run_until(sleep(seconds(5))).await;
    let deleted: Vec<bool> = world.queue.deleted_at().iter().map(Option::is_some).collect();
    assert_eq!((deleted, world.api.released().len()), (vec![true, true, false], 0));
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_lease_cannot_be_checked_is_left() {
    let world = World::new();
    world.api.script([Scripted::Refused(401)]);
    world.queue.send_received_before(body(0), 1);
    world.consumer(never).run_until(sleep(seconds(5))).await;
    assert_eq!((world.queue.deleted_at(), world.api.released().len()), (vec![None], 0));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_finishes_what_is_under_way_and_releases_without_delay() {
    let world = World::new();
    world.queue.send(body(0));
    let consumer = world.consumer(taking(seconds(15)).1).linger(Duration::MAX);
    let started = Instant::now();
    consumer.run_until(sleep(seconds(1))).await;
    assert_eq!(started.elapsed(), seconds(15));
    assert_eq!((world.api.released().len(), world.queue.deleted_at()), (1, vec![Some(seconds(15))]));
}

/// Notes, when it is dropped, whether its lease was lost.
struct NotesDrop(Shared<Option<bool>>, Lease);

impl Drop for NotesDrop {
    fn drop(&mut self) {
        *self.0.lock().unwrap() = Some(self.1.is_lost());
    }
}

/// A consumer whose work does not end; its leases, and whether each was lost when its work was dropped.
fn endless(world: &World) -> (Shared<Vec<Lease>>, Shared<Option<bool>>, QueueConsumer) {
    let (leases, dropped) = (Shared::<Vec<Lease>>::default(), Shared::<Option<bool>>::default());
    let noted = (Arc::clone(&leases), Arc::clone(&dropped));
    let consumer = world.consumer(move |_, lease| {
        noted.0.lock().unwrap().push(lease.clone());
        let kept = NotesDrop(Arc::clone(&noted.1), lease);
        async move {
            std::future::pending::<()>().await;
            drop(kept);
            Ok(None)
        }
    });
    (leases, dropped, consumer)
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_gives_up_what_takes_too_long() {
    let world = World::new();
    world.queue.send(body(0));
    let (_, dropped, consumer) = endless(&world);
    let started = Instant::now();
    consumer.shutdown(seconds(15)).run_until(sleep(seconds(3))).await;
    assert_eq!((started.elapsed(), *dropped.lock().unwrap()), (seconds(18), Some(true)));
    assert_eq!((world.api.released().len(), world.queue.deleted_at()), (0, vec![None]));
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_is_dropped_gives_up_everything_at_once() {
    let world = World::new();
    world.queue.send(body(0));
    let (leases, dropped, consumer) = endless(&world);
    assert!(timeout(seconds(30), consumer.run_until(std::future::pending())).await.is_err());
    sleep(seconds(20)).await;
    assert!(dropped.lock().unwrap().is_some(), "the work goes on");
    // What the work has begun in other tasks is told.
    assert!(leases.lock().unwrap().iter().all(Lease::is_lost));
    assert_eq!((world.api.released().len(), world.api.extended().len()), (0, 1)); // none after 20 s
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_forever_for_its_last_releases() {
    let world = World::new();
    world.api.script([Scripted::Silence; 6]);
    world.queue.send(body(0));
    let started = Instant::now();
    world.consumer(taking(Duration::ZERO).1).run_until(sleep(seconds(1))).await;
    // The receive that was on its way ends at 10 s, and then come 5 s of grace.
    assert_eq!((started.elapsed(), world.queue.deleted_at()), (seconds(15), vec![None]));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_longer_for_a_receive_than_for_work() {
    let world = World::new();
    let started = Instant::now();
    world.consumer(never).wait(seconds(20)).shutdown(seconds(3)).run_until(sleep(seconds(1))).await;
    assert_eq!(started.elapsed(), seconds(4));
}

#[tokio::test(start_paused = true)]
async fn messages_that_arrive_after_the_stop_are_visible_again_at_once() {
    let world = World::new();
    let queue = Arc::clone(&world.queue);
    let running = tokio::spawn(world.consumer(never).run_until(sleep(seconds(2))));
    sleep(seconds(3)).await;
    queue.send(body(0));
    running.await.unwrap();
    let visibility = [(seconds(3), seconds(60)), (seconds(3), seconds(0))];
    assert_eq!((queue.stored(0).visibility, queue.deleted_at()), (visibility.to_vec(), vec![None]));
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_start_ends_it_at_once() {
    let world = World::new();
    world.queue.send(body(0));
    let started = Instant::now();
    world.consumer(never).run_until(async {}).await;
    assert_eq!((started.elapsed(), world.queue.stored(0).deleted_at), (Duration::ZERO, None));
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_does_not_answer_is_asked_again_with_back_off() {
    let world = World::new();
    world.queue.fail(["not allowed", "no route"]);
    world.queue.send(body(0));
    world.consumer(taking(Duration::ZERO).1).run_until(sleep(seconds(3))).await;
    let receives: Vec<u128> = world.queue.receives().iter().map(|(at, _)| at.as_millis()).collect();
    assert_eq!(receives[..3], [0, 500, 1_500]);
    assert!(world.queue.stored(0).deleted_at.is_some());
}

#[tokio::test(start_paused = true)]
async fn releases_that_come_within_the_linger_go_together_up_to_a_hundred() {
    let world = World::new();
    for index in 0..101 {
        world.queue.send(body(index));
    }
    let consumer = world.consumer(|event, _| async move {
        sleep(Duration::from_millis(1_000 + u64::from(event.index % 19))).await;
        Ok(None)
    });
    consumer.concurrency(200).run_until(sleep(seconds(5))).await;
    let sizes: Vec<usize> = world.api.releases().into_iter().map(|(_, tokens)| tokens).collect();
    assert_eq!(sizes, [100, 1]);
    assert_eq!(world.queue.deletes(), [100, 1]);
}
