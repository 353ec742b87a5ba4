//! The page's ends of the lines to its workers: one question at a time on each. The figures have a line of their own, so
//! that they never wait for a point of a curve.

use std::cell::RefCell;
use std::collections::VecDeque;

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{MessageEvent, Worker, WorkerOptions, WorkerType};

use super::curve;
use super::desk::Desk;
use crate::ask::{Answer, Axis, Reply, Request, Task, Variation};
use crate::worker::READY;

/// Beside the page; its loader starts the worker's WASM.
const SCRIPT: &str = "./worker_loader.js";

thread_local! {
    static LINES: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// The line for plans and files.
const FIGURES: usize = 0;
/// The line for curves.
const CURVES: usize = 1;

struct Line {
    worker: Worker,
    ready: bool,
    number: u64,
    asked: Option<(u64, Question)>,
    plan: Option<String>,
    text: Option<String>,
    points: VecDeque<Variation>,
}

/// What the open request is about.
enum Question {
    Plan,
    Text,
    Point(Axis, f64),
    /// Of a plan that has changed since.
    Outdated,
}

/// Starts the workers and delivers what they answer to `desk`.
pub fn open(desk: Desk) {
    for line in [FIGURES, CURVES] {
        let options = WorkerOptions::new();
        options.set_type(WorkerType::Module);
        let Ok(worker) = Worker::new_with_options(SCRIPT, &options) else {
            desk.notice.set("This browser cannot start a worker; nothing can be computed.".to_owned());
            return;
        };
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            receive(desk, line, &event.data().as_string().unwrap_or_default());
        });
        worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        on_message.forget();
        let points = VecDeque::new();
        let line = Line { worker, ready: false, number: 0, asked: None, plan: None, text: None, points };
        LINES.with_borrow_mut(|lines| lines.push(line));
    }
}

/// Asks what the plan in `text` costs; an earlier plan not yet asked about is forgotten.
pub fn certify(text: String) {
    for number in [CURVES, FIGURES] {
        with_line(number, |line| {
            line.points.clear();
            if let Some((_, question @ (Question::Point(..) | Question::Plan))) = &mut line.asked {
                *question = Question::Outdated;
            }
        });
    }
    with_line(FIGURES, |line| line.plan = Some(text));
}

/// Asks for points of a curve, in this order.
pub fn vary(points: impl IntoIterator<Item = Variation>) {
    with_line(CURVES, |line| line.points.extend(points));
}

/// Asks whether `text` is a plan; if so it is put on the desk.
pub fn read(text: String) {
    with_line(FIGURES, |line| line.text = Some(text));
}

fn with_line(number: usize, change: impl FnOnce(&mut Line)) {
    LINES.with_borrow_mut(|lines| {
        if let Some(line) = lines.get_mut(number) {
            change(line);
            line.send_next();
        }
    });
}

fn receive(desk: Desk, number: usize, text: &str) {
    if text == READY {
        with_line(number, |line| line.ready = true);
        return;
    }
    let Ok(reply) = serde_json::from_str::<Reply>(text) else { return };
    let question = LINES.with_borrow_mut(|lines| {
        let asked = lines.get_mut(number)?.asked.take_if(|(id, _)| *id == reply.id);
        asked.map(|(_, question)| question)
    });
    deliver(desk, question, reply);
    with_line(number, |_| {});
}

fn deliver(desk: Desk, question: Option<Question>, reply: Reply) {
    match (question, reply.outcome) {
        (Some(Question::Plan), outcome) => {
            let certified = outcome.is_ok();
            desk.judge(outcome);
            if certified {
                curve::ask(desk);
            }
        }
        (Some(Question::Text), Ok(Answer::Plan(plan))) => {
            desk.notice.set(format!("Plan {} is open", plan.name));
            desk.rejected.set(None);
            desk.replace(*plan);
        }
        (Some(Question::Text), Err(refusal)) => {
            desk.notice.set(format!("Not opened: {}", refusal.given));
            desk.rejected.set(Some(refusal));
        }
        (Some(Question::Point(axis, value)), Ok(Answer::Epsilon(bounds))) => {
            desk.plot(axis, (value, bounds.upper))
        }
        _ => {}
    }
}

impl Line {
    fn send_next(&mut self) {
        if !self.ready || self.asked.is_some() {
            return;
        }
        let (question, task) = if let Some(text) = self.text.take() {
            (Question::Text, Task::Read(text))
        } else if let Some(text) = self.plan.take() {
            (Question::Plan, Task::Certify(text))
        } else if let Some(point) = self.points.pop_front() {
            (Question::Point(point.axis, point.value), Task::Vary(point))
        } else {
            return;
        };
        self.number += 1;
        let request = Request { id: self.number, task };
        let text = serde_json::to_string(&request).unwrap_or_default();
        if self.worker.post_message(&text.into()).is_ok() {
            self.asked = Some((self.number, question));
        }
    }
}
