//! Requests to the store: each bounded in time, and its outcome in the few words that decisions are made of.
//!
//! What a store says in an error may quote keys and signatures: only status and code are kept of it.

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Error as Said, GetOptions, PutMode, PutOptions};
use std::fmt;
use std::time::Duration;

use super::location::Place;
use crate::{Deps, Error, Result};

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often something that changes nothing is asked.
const TRIES: u32 = 5;

/// Why a request did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// 409 or 412.
    Exists,
    /// 404.
    Absent,
    /// 429, or 503 with the code of too many requests.
    Throttled,
    /// The store does not know this kind of request.
    Unsupported,
    /// Everything else: it may have been done, or may be done later.
    Unknown(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exists => "it exists already",
            Self::Absent => "it is not there",
            Self::Throttled => "too many requests",
            Self::Unsupported => "the store does not know this request",
            Self::Unknown(words) => words,
        })
    }
}

impl From<Said> for Failure {
    fn from(said: Said) -> Self {
        match said {
            Said::AlreadyExists { .. } | Said::Precondition { .. } | Said::NotModified { .. } => Self::Exists,
            Said::NotFound { .. } => Self::Absent,
            Said::NotImplemented { .. } | Said::NotSupported { .. } => Self::Unsupported,
            Said::PermissionDenied { .. } => Self::Unknown("the credentials do not permit it (403)".into()),
            Said::Unauthenticated { .. } => Self::Unknown("the credentials were not accepted (401)".into()),
            other => heard(&other.to_string()),
        }
    }
}

/// The status and the code in a store's answer, and nothing else of it.
fn heard(text: &str) -> Failure {
    let status: String = text
        .split_once("status code: ")
        .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect())
        .unwrap_or_default();
    let code = text
        .split_once("<Code>")
        .and_then(|(_, rest)| rest.split_once("</Code>"))
        .map(|(code, _)| code)
        .filter(|code| code.len() < 40 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    if status == "429" || ["SlowDown", "TooManyRequests", "ServerBusy"].contains(&code.unwrap_or_default()) {
        return Failure::Throttled;
    }
    Failure::Unknown(match (status.as_str(), code) {
        ("", _) => "no answer, the connection failed".to_owned(),
        (status, None) => format!("it answered {status}"),
        (status, Some(code)) => format!("it answered {status} {code}"),
    })
}

/// The way to one checkpoint's objects.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    pub(super) place: Place,
    pub(super) deps: Deps,
}

impl Requests {
    pub(super) const fn new(place: Place, deps: Deps) -> Self {
        Self { place, deps }
    }

    pub(super) fn failed(&self, path: &Path, failure: &Failure) -> Error {
        Error::Store {
            path: self.place.path().to_owned(),
            reason: format!("`{path}`: {failure}"),
        }
    }

    async fn bounded<T>(&self, asking: impl Future<Output = object_store::Result<T>>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            answer = asking => answer.map_err(Failure::from),
            () = self.deps.clock.sleep(PATIENCE) => Err(Failure::Unknown(format!("no answer within {PATIENCE:?}"))),
        }
    }

    /// Waits so long, and up to half as much again, so that rivals do not stay in step.
    pub(super) async fn pause(&self, at_least: Duration) {
        let half = u64::try_from(at_least.as_millis()).unwrap_or(u64::MAX) / 2;
        let extra = self.deps.rng.next_u64() % half.max(1);
        self.deps
            .clock
            .sleep(at_least + Duration::from_millis(extra))
            .await;
    }

    /// One PUT of an object that must not exist.
    pub(super) async fn create(&self, path: &Path, bytes: Bytes) -> Result<(), Failure> {
        self.put(path, bytes, PutMode::Create).await
    }

    /// One PUT of an object that may exist.
    pub(super) async fn overwrite(&self, path: &Path, bytes: Bytes) -> Result<(), Failure> {
        self.put(path, bytes, PutMode::Overwrite).await
    }

    async fn put(&self, path: &Path, bytes: Bytes, mode: PutMode) -> Result<(), Failure> {
        let options = PutOptions {
            mode,
            ..PutOptions::default()
        };
        self.bounded(self.place.store.put_opts(path, bytes.into(), options))
            .await
            .map(drop)
    }

    /// One GET; `None` when there is no such object.
    pub(super) async fn read_once(&self, path: &Path) -> Result<Option<Bytes>, Failure> {
        let store = &self.place.store;
        let reading = async { store.get_opts(path, GetOptions::default()).await?.bytes().await };
        match self.bounded(reading).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Failure::Absent) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// GETs until there is an answer.
    pub(super) async fn read(&self, path: &Path) -> Result<Option<Bytes>> {
        let found = self.again(|| self.read_once(path)).await;
        found.map_err(|failure| self.failed(path, &failure))
    }

    /// LISTs until there is an answer: the names below `folder`, behind `after` if it is given, in order.
    pub(super) async fn list(&self, folder: &Path, after: Option<&Path>) -> Result<Vec<Path>> {
        let store = &self.place.store;
        let listing = || async move {
            let stream = match after {
                Some(after) => store.list_with_offset(Some(folder), after),
                None => store.list(Some(folder)),
            };
            let mut names: Vec<Path> = self
                .bounded(stream.map_ok(|meta| meta.location).try_collect())
                .await?;
            names.sort_unstable();
            Ok(names)
        };
        self.again(listing)
            .await
            .map_err(|failure| self.failed(folder, &failure))
    }

    /// Removes objects; those that are gone already do not matter.
    pub(super) async fn remove(&self, paths: Vec<Path>) -> Result<(), Failure> {
        if paths.is_empty() {
            return Ok(());
        }
        let removing = || async {
            let stream = futures::stream::iter(paths.clone().into_iter().map(Ok));
            let mut removed = self.place.store.delete_stream(Box::pin(stream));
            let removing = async {
                loop {
                    match removed.try_next().await {
                        Ok(None) => return Ok(()),
                        Ok(Some(_)) | Err(Said::NotFound { .. }) => {}
                        Err(error) => return Err(error),
                    }
                }
            };
            self.bounded(removing).await
        };
        self.again(removing).await
    }

    /// For what may be repeated without harm.
    async fn again<T, F>(&self, ask: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mut pause = Duration::from_millis(50);
        for _ in 1..TRIES {
            match ask().await {
                Err(Failure::Unknown(_) | Failure::Throttled) => self.pause(pause).await,
                answer => return answer,
            }
            pause *= 2;
        }
        ask().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_stores_answer_only_status_and_code_are_kept() {
        let body = "Server returned non-2xx status code: 403 Forbidden: <Error><Code>SignatureDoesNotMatch</Code>\
                    <AWSAccessKeyId>AKIASECRET</AWSAccessKeyId></Error>";
        assert_eq!(
            heard(body),
            Failure::Unknown("it answered 403 SignatureDoesNotMatch".into())
        );
        assert_eq!(
            heard("status code: 503 Service Unavailable: <Code>SlowDown</Code>"),
            Failure::Throttled
        );
        assert_eq!(
            heard("error sending request for url (http://key@host/)"),
            Failure::Unknown("no answer, the connection failed".into())
        );
    }
}
