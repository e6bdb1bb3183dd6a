//! The server: three pages, on a thread of its own, gone with the process.

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use baton_core::ErrorKind;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::runtime::Builder;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::address::Listening;
use super::board::Board;
use super::door::Door;
use super::page;
use super::verdict::Verdict;
use crate::failure::{Failure, Result};

/// A server at work. Dropping it ends it: connections are cut, nobody is waited for.
#[derive(Debug)]
pub(crate) struct Server {
    stop: Option<DropGuard>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    /// Answers from now on.
    ///
    /// # Errors
    /// E0511 when the system gives no thread.
    pub(crate) fn serve(self, board: Arc<Board>) -> Result<Server> {
        start(self, board).map_err(|error| {
            Failure::new(
                ErrorKind::Unavailable,
                "E0511",
                format!("cannot start threads: {error}"),
            )
        })
    }
}

fn start(listening: Listening, board: Arc<Board>) -> io::Result<Server> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let door = {
        let _inside = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listening.listener)?;
        Door::new(listener, Arc::clone(&board.clock))
    };
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let work = move || {
        runtime.block_on(async {
            tokio::select! {
                () = stopped.cancelled() => {}
                ended = async { axum::serve(door, pages(board)).await } => drop(ended),
            }
        });
    };
    let thread = std::thread::Builder::new()
        .name("baton-health".to_owned())
        .spawn(work)?;
    Ok(Server {
        stop: Some(stop.drop_guard()),
        thread: Some(thread),
    })
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It waits for nothing, so this takes no longer than writing one page. A panic has been said already.
            drop(thread.join());
        }
    }
}

fn pages(board: Arc<Board>) -> Router {
    Router::new()
        .route(
            "/healthz",
            get(|State(board): State<Arc<Board>>| async move { verdict(board.lives()) }),
        )
        .route(
            "/readyz",
            get(|State(board): State<Arc<Board>>| async move { verdict(board.is_ready()) }),
        )
        .route(
            "/metrics",
            get(|State(board): State<Arc<Board>>| async move {
                answer(StatusCode::OK, page::CONTENT_TYPE, board.page())
            }),
        )
        .fallback(|| async {
            let text = "there are /healthz, /readyz and /metrics\n".to_owned();
            answer(StatusCode::NOT_FOUND, PLAIN, text)
        })
        .with_state(board)
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn verdict(verdict: Verdict) -> Response {
    let (status, line) = match verdict {
        Verdict::Fine(line) => (StatusCode::OK, line),
        Verdict::Wrong(line) => (StatusCode::SERVICE_UNAVAILABLE, line),
    };
    // Errors of others may have several lines.
    let words: Vec<&str> = line.split_whitespace().collect();
    answer(status, PLAIN, words.join(" ") + "\n")
}

/// One answer a connection: so none is held open, and none is cut while the next question is on its way.
fn answer(status: StatusCode, content_type: &'static str, body: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONNECTION, "close"),
    ];
    (status, headers, body).into_response()
}
