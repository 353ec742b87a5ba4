//! Connections to the workers. Each worker handles one request at a time. Figures have a worker of their own, so that they
//! never wait for a point of a chart.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

use js_sys::Uint8Array;
use plan::PlanFile;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{MessageEvent, Worker, WorkerOptions, WorkerType};

use super::browser::{Interval, document, handle};
use super::state::PlannerState;
use crate::protocol::{Answer, ConversionRequest, Refusal, Request, Response, Task, decode, encode};
use crate::worker::READY;

/// The script that starts the page's own module in a worker.
const SCRIPT: &str = "./worker.js";

/// Time within which an answer must arrive, in milliseconds. After it, the page replaces the
/// worker.
const DEADLINE: f64 = 30_000.0;
/// Interval at which the page looks for late answers.
const DEADLINE_CHECK: Duration = Duration::from_millis(500);

/// The function that is called with each answer to a follow-up task.
pub(crate) type OnFollowup = fn(PlannerState, &Task, Answer);

thread_local! {
    static CONNECTIONS: RefCell<Vec<Connection>> = const { RefCell::new(Vec::new()) };
}

/// A worker and what it is used for.
#[derive(Clone, Copy, PartialEq)]
enum Channel {
    /// Plans and files.
    Figures,
    /// Everything else.
    Followups,
}

struct Connection {
    worker: Worker,
    ready: bool,
    /// Time at which the pending request was sent, in milliseconds.
    sent: f64,
    last_id: u64,
    pending: Option<(u64, Pending)>,
    /// Files and conversions.
    queue: VecDeque<Task>,
    /// The newest plan that is not certified yet.
    plan: Option<Task>,
    followups: VecDeque<Task>,
}

/// The use of the response to the pending request.
enum Pending {
    Plan,
    Parse,
    Convert,
    Followup(Task),
    /// The plan has changed since: drop the response.
    Outdated,
}

/// Starts the workers. Their answers go to `state`, and to `on_followup`.
pub(crate) fn connect(state: PlannerState, on_followup: OnFollowup) {
    for channel in [Channel::Figures, Channel::Followups] {
        let Some(worker) = listening_worker(state, channel, on_followup) else {
            state.announce("This browser cannot start a web worker, so the page cannot compute anything.");
            return;
        };
        CONNECTIONS.with_borrow_mut(|all| all.push(Connection::new(worker)));
    }
    let replace_late = move || {
        for channel in [Channel::Figures, Channel::Followups] {
            replace_if_late(state, channel, on_followup);
        }
    };
    // The interval runs for as long as the page lives.
    let _ = Interval::new(replace_late, DEADLINE_CHECK);
}

fn listening_worker(state: PlannerState, channel: Channel, on_followup: OnFollowup) -> Option<Worker> {
    let worker = start_worker(SCRIPT, &own_module().unwrap_or_default())?;
    let listener = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        handle(|| receive(state, channel, &event.data(), on_followup));
    });
    worker.set_onmessage(Some(listener.as_ref().unchecked_ref()));
    listener.forget();
    Some(worker)
}

/// Replaces a worker whose answer is late. The request is refused: its answer could take minutes.
fn replace_if_late(state: PlannerState, channel: Channel, on_followup: OnFollowup) {
    let late = CONNECTIONS.with_borrow_mut(|all| {
        let connection = all.get_mut(channel as usize)?;
        if connection.pending.is_none() || js_sys::Date::now() < connection.sent + DEADLINE {
            return None;
        }
        let worker = listening_worker(state, channel, on_followup)?;
        std::mem::replace(&mut connection.worker, worker).terminate();
        connection.ready = false;
        connection.pending.take()
    });
    let refusal = Refusal {
        given: format!("The answer took longer than {} seconds", DEADLINE / 1000.0),
        fix: "choose noise, ε and sampling nearer to common values, or compute it on the command line"
            .to_owned(),
        ..Refusal::default()
    };
    match late {
        Some((_, Pending::Plan)) => state.receive(Err(refusal)),
        Some((_, Pending::Parse | Pending::Convert)) => state.rejected.set(Some(refusal)),
        _ => {}
    }
}

/// Returns whether this module still has workers. It has none once the other view has taken over.
pub(crate) fn is_connected() -> bool {
    CONNECTIONS.with_borrow(|all| !all.is_empty())
}

/// Ends the workers. The page gets no more figures from them.
pub(crate) fn disconnect() {
    CONNECTIONS.with_borrow_mut(|all| all.drain(..).for_each(|connection| connection.worker.terminate()));
}

/// Starts a worker. `name` passes it data: the script's address cannot, since the service worker keeps one file per
/// address.
pub(crate) fn start_worker(script: &str, name: &str) -> Option<Worker> {
    let options = WorkerOptions::new();
    options.set_type(WorkerType::Module);
    options.set_name(name);
    Worker::new_with_options(script, &options).ok()
}

/// Returns the addresses of this module's script and WASM file, from the document.
fn own_module() -> Option<String> {
    let address = |selector| {
        let link = document().query_selector(selector).ok()??;
        let base = link.base_uri().ok()??;
        let url = web_sys::Url::new_with_base(&link.get_attribute("href")?, &base).ok()?;
        Some(url.href())
    };
    Some(format!("{}|{}", address("link[rel=modulepreload]")?, address("link[rel=preload][as=fetch]")?))
}

/// Requests figures of the current plan. Requests about earlier plans are dropped.
pub(crate) fn request(task: Task) {
    for channel in [Channel::Followups, Channel::Figures] {
        with_connection(channel, |connection| {
            connection.followups.clear();
            if let Some((_, pending @ (Pending::Followup(_) | Pending::Plan))) = &mut connection.pending {
                *pending = Pending::Outdated;
            }
        });
    }
    with_connection(Channel::Figures, |connection| connection.plan = Some(task));
}

/// Requests follow-up tasks, in this order.
pub(crate) fn request_followups(tasks: impl IntoIterator<Item = Task>) {
    with_connection(Channel::Followups, |connection| connection.followups.extend(tasks));
}

/// Parses `text`. If it is a plan, it replaces the current one.
pub(crate) fn open(text: String) {
    with_connection(Channel::Figures, |connection| connection.queue.push_back(Task::Parse(text)));
}

/// Converts a privacy target to ε, which becomes the plan's target.
pub(crate) fn set_target(conversion: ConversionRequest) {
    with_connection(Channel::Figures, |connection| connection.queue.push_back(Task::Convert(conversion)));
}

fn with_connection(channel: Channel, change: impl FnOnce(&mut Connection)) {
    CONNECTIONS.with_borrow_mut(|all| {
        if let Some(connection) = all.get_mut(channel as usize) {
            change(connection);
            connection.send_next();
        }
    });
}

fn receive(state: PlannerState, channel: Channel, message: &JsValue, on_followup: OnFollowup) {
    if *message == *READY {
        with_connection(channel, |connection| connection.ready = true);
        return;
    }
    let Some(response) = decode::<Response>(&Uint8Array::new(message).to_vec()) else { return };
    let pending = CONNECTIONS.with_borrow_mut(|all| {
        let pending = all.get_mut(channel as usize)?.pending.take_if(|(id, _)| *id == response.id);
        pending.map(|(_, pending)| pending)
    });
    deliver(state, pending, response, on_followup);
    with_connection(channel, |_| {});
}

fn deliver(state: PlannerState, pending: Option<Pending>, response: Response, on_followup: OnFollowup) {
    match (pending, response.outcome) {
        (Some(Pending::Plan), outcome) => state.receive(outcome),
        (Some(Pending::Parse), Ok(Answer::Plan(text))) => {
            // The worker has just written this text.
            let Some(plan) = PlanFile::unchecked(&text) else { return };
            state.announce(format!("Opened plan {}", plan.name));
            state.rejected.set(None);
            state.open(plan);
        }
        (Some(Pending::Convert), Ok(Answer::Converted(epsilon))) => state.set_target_epsilon(epsilon),
        (Some(Pending::Parse | Pending::Convert), Err(refusal)) => {
            state.announce(format!("Not accepted: {}", refusal.given));
            state.rejected.set(Some(refusal));
        }
        (Some(Pending::Followup(task)), Ok(answer)) => on_followup(state, &task, answer),
        _ => {}
    }
}

impl Connection {
    fn new(worker: Worker) -> Self {
        let (queue, followups) = (VecDeque::new(), VecDeque::new());
        Self { worker, ready: false, sent: 0.0, last_id: 0, pending: None, queue, plan: None, followups }
    }

    /// Sends the next request if the worker is free: files first, then the plan, then follow-ups.
    fn send_next(&mut self) {
        if !self.ready || self.pending.is_some() {
            return;
        }
        let (pending, task) = if let Some(task) = self.queue.pop_front() {
            (if matches!(task, Task::Convert(_)) { Pending::Convert } else { Pending::Parse }, task)
        } else if let Some(task) = self.plan.take() {
            (Pending::Plan, task)
        } else if let Some(task) = self.followups.pop_front() {
            (Pending::Followup(task.clone()), task)
        } else {
            return;
        };
        self.last_id += 1;
        let request = Request { id: self.last_id, task };
        let message = Uint8Array::from(encode(&request).as_slice());
        if self.worker.post_message(&message).is_ok() {
            self.pending = Some((self.last_id, pending));
            self.sent = js_sys::Date::now();
        }
    }
}
