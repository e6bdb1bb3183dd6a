//! librdkafka clients: made, watched and let go.

use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::{Error, Result};

/// How long the poll thread waits for an event before it looks whether its client is still wanted.
const POLL: Duration = Duration::from_millis(200);

/// What a client tells of itself: its log goes to `tracing`, its last error is kept for messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context {
    last_error: Arc<Mutex<Option<String>>>,
}

impl Context {
    /// The last connection error, if there was one.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        // What a job must know comes back as an error of a call; the client's log is for a closer look.
        match level {
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
                tracing::error!(target: "librdkafka", facility, "{message}");
            }
            RDKafkaLogLevel::Error | RDKafkaLogLevel::Warning => {
                tracing::info!(target: "librdkafka", facility, "{message}");
            }
            RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => {
                tracing::debug!(target: "librdkafka", facility, "{message}");
            }
            RDKafkaLogLevel::Debug => tracing::trace!(target: "librdkafka", facility, "{message}"),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(target: "librdkafka", "{reason}");
        let mut last = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        // "all brokers are down" says less than what made the last one go.
        if last.is_none() || error.rdkafka_error_code() != Some(RDKafkaErrorCode::AllBrokersDown) {
            *last = Some(reason.to_owned());
        }
    }
}

impl ConsumerContext for Context {}

/// A consumer as this crate uses it: no subscription, no assignment.
pub(crate) type Client = BaseConsumer<Context>;

/// Makes a client and the thread that serves its log and errors. No connection is waited for.
///
/// # Errors
/// [`Error::Refused`] with the client's own answer, for example to certificates that cannot be read.
pub(crate) fn connect(config: &ClientConfig, address: &str) -> Result<(Arc<Client>, Context)> {
    let context = Context::default();
    let client =
        Client::from_config_and_context(config, context.clone()).map_err(|error| Error::Refused {
            address: address.to_owned(),
            task: "be connected to".to_owned(),
            cause: describe(&error),
        })?;
    let client = Arc::new(client);
    serve(Arc::downgrade(&client));
    Ok((client, context))
}

/// The client's own words, without the wrapper's; never a property's value.
pub(crate) fn describe(error: &KafkaError) -> String {
    match error {
        KafkaError::ClientCreation(text) => text.clone(),
        KafkaError::ClientConfig(_, answer, key, _) => format!("{key}: {answer}"),
        error => error
            .rdkafka_error_code()
            .map_or_else(|| error.to_string(), describe_code),
    }
}

/// What a code means, in a few words.
pub(crate) fn describe_code(code: RDKafkaErrorCode) -> String {
    // The wrapper prints "Name (Broker: text)".
    code.to_string()
}

/// Ends by itself soon after the last other user of the client is gone; may then be the one that destroys it, which
/// takes a moment and is better done here than on a runtime's thread.
fn serve(client: Weak<Client>) {
    let named = std::thread::Builder::new().name("kafka-events".to_owned());
    let started = named.spawn(move || {
        while let Some(client) = client.upgrade() {
            drop(client.poll(POLL));
        }
    });
    if let Err(error) = started {
        tracing::warn!("no thread for the Kafka client's log: {error}");
    }
}
