//! The calls of librdkafka for which the Rust wrapper has no form: whole batches of messages from one partition's own
//! queue, and the offsets of all partitions in one request. All `unsafe` of this crate is here.
//!
//! Partitions are fetched by the "simple consumer" calls (`rd_kafka_consume_start`): no group, and a queue for each
//! partition, so that reading can stop exactly at the end of a range and what was fetched beyond it stays for the next.
#![expect(
    unsafe_code,
    reason = "one call a batch instead of one a message, one request instead of one a partition"
)]

use futures::task::AtomicWaker;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka_sys as sys;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::{CStr, CString, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::rows::{Header, Record};

/// A failure in the client's own words.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: RDKafkaErrorCode,
    pub(crate) text: String,
}

impl Failure {
    fn of(code: sys::rd_kafka_resp_err_t) -> Self {
        // SAFETY: librdkafka gives a static, NUL-terminated text for every code.
        let text = unsafe { CStr::from_ptr(sys::rd_kafka_err2str(code)) };
        Self {
            code: code.into(),
            text: text.to_string_lossy().into_owned(),
        }
    }

    fn other(text: &str) -> Self {
        Self {
            code: RDKafkaErrorCode::Fail,
            text: text.to_owned(),
        }
    }
}

fn check(code: sys::rd_kafka_resp_err_t) -> Result<(), Failure> {
    match code {
        sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
        code => Err(Failure::of(code)),
    }
}

/// The names of all properties that librdkafka knows.
pub(crate) fn property_names() -> Vec<String> {
    // SAFETY: the configuration is made and destroyed here; the dump holds `count` pointers, names and values in turn,
    // that live until the dump is freed.
    unsafe {
        let conf = sys::rd_kafka_conf_new();
        let mut count = 0;
        let dump = sys::rd_kafka_conf_dump(conf, &mut count);
        let names = (0..count)
            .step_by(2)
            .map(|at| CStr::from_ptr(*dump.add(at)).to_string_lossy().into_owned());
        let names = names.collect();
        sys::rd_kafka_conf_dump_free(dump, count);
        sys::rd_kafka_conf_destroy(conf);
        names
    }
}

/// One fetched message, or an event in its place.
#[repr(transparent)]
pub(crate) struct Message(NonNull<sys::rd_kafka_message_t>);

// SAFETY: a message belongs to whoever holds it; librdkafka's messages may be used and destroyed by any thread.
unsafe impl Send for Message {}

impl Drop for Message {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a consume call and is destroyed once, here.
        unsafe { sys::rd_kafka_message_destroy(self.0.as_ptr()) }
    }
}

impl Message {
    fn raw(&self) -> &sys::rd_kafka_message_t {
        // SAFETY: the message lives until it is dropped, and nobody else has it.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    pub(crate) fn offset(&self) -> i64 {
        self.raw().offset
    }

    /// Set when this is no record: the end of the partition, or a failure.
    #[inline]
    pub(crate) fn failure(&self) -> Option<Failure> {
        if self.raw().err == sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
            return None;
        }
        // SAFETY: the text is NUL-terminated and lives as long as the message.
        let text = unsafe { CStr::from_ptr(sys::rd_kafka_message_errstr(self.0.as_ptr())) };
        Some(Failure {
            code: self.raw().err.into(),
            text: text.to_string_lossy().into_owned(),
        })
    }

    /// The record, borrowed from the client's buffers.
    #[inline]
    pub(crate) fn record(&self) -> Record<'_> {
        use sys::rd_kafka_timestamp_type_t as Kind;
        let raw = self.raw();
        let mut kind = Kind::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
        // SAFETY: a plain look-up in the message; `kind` is written one of the enum's values.
        let millis = unsafe { sys::rd_kafka_message_timestamp(self.0.as_ptr(), &mut kind) };
        let timestamp_type = match kind {
            Kind::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE => -1,
            Kind::RD_KAFKA_TIMESTAMP_CREATE_TIME => 0,
            Kind::RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME => 1,
        };
        // SAFETY: key and payload are null or point at so many bytes, which live as long as the message.
        let (key, value) = unsafe { (bytes(raw.key, raw.key_len), bytes(raw.payload, raw.len)) };
        Record {
            key,
            value,
            offset: raw.offset,
            millis,
            timestamp_type,
        }
    }

    /// The record's headers in order; none when it has none.
    pub(crate) fn headers(&self) -> Result<impl Iterator<Item = Header<'_>>, Failure> {
        let mut list = ptr::null_mut();
        // SAFETY: parses the headers into a list that belongs to the message.
        let code = unsafe { sys::rd_kafka_message_headers(self.0.as_ptr(), &mut list) };
        match code {
            sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR__NOENT => list = ptr::null_mut(),
            code => check(code)?,
        }
        let mut at = 0;
        Ok(std::iter::from_fn(move || {
            let list = NonNull::new(list)?;
            let (mut name, mut value, mut len) = (ptr::null(), ptr::null(), 0);
            // SAFETY: the list lives as long as the message, which the iterator borrows; beyond its end the call says so.
            let code =
                unsafe { sys::rd_kafka_header_get_all(list.as_ptr(), at, &mut name, &mut value, &mut len) };
            check(code).ok()?;
            at += 1;
            // SAFETY: the name is NUL-terminated, the value null or `len` bytes; both live as long as the list.
            Some(unsafe {
                Header {
                    key: CStr::from_ptr(name).to_bytes(),
                    value: bytes(value, len),
                }
            })
        }))
    }
}

/// # Safety
/// `at` is null or points at `len` bytes that live for `'a`.
#[inline]
unsafe fn bytes<'a>(at: *const c_void, len: usize) -> Option<&'a [u8]> {
    let at = NonNull::new(at.cast_mut().cast::<u8>())?;
    // SAFETY: the caller's promise.
    Some(unsafe { std::slice::from_raw_parts(at.as_ptr(), len) })
}

/// One partition that is being fetched, with a queue of its own.
pub(crate) struct Partition<C: ConsumerContext + 'static> {
    topic: *mut sys::rd_kafka_topic_t,
    queue: *mut sys::rd_kafka_queue_t,
    name: CString,
    partition: i32,
    started: bool,
    waker: Arc<AtomicWaker>,
    scratch: Vec<*mut sys::rd_kafka_message_t>,
    /// Last: everything above belongs to this client and must go before it.
    client: Arc<BaseConsumer<C>>,
}

// SAFETY: librdkafka's handles may be used by any thread; this type is used by one at a time.
unsafe impl<C: ConsumerContext> Send for Partition<C> {}

extern "C" fn wake(_client: *mut sys::rd_kafka_t, waker: *mut c_void) {
    // SAFETY: the pointer is that of the partition's `Arc<AtomicWaker>`, which outlives the queue's callback.
    unsafe { &*waker.cast_const().cast::<AtomicWaker>() }.wake();
}

impl<C: ConsumerContext> Partition<C> {
    /// Prepares a partition; nothing is fetched yet. The waker wakes when something comes into the empty queue.
    pub(crate) fn new(client: Arc<BaseConsumer<C>>, topic: &str, partition: i32) -> Result<Self, Failure> {
        let name = CString::new(topic).map_err(|_| Failure::other("the topic's name holds a NUL"))?;
        let waker = Arc::new(AtomicWaker::new());
        let native = client.client().native_ptr();
        // SAFETY: the client is alive; topic and queue are counted references that `drop` gives back before the client
        // goes. The waker's pointer stays valid until `drop` has taken the callback away.
        unsafe {
            let handle = sys::rd_kafka_topic_new(native, name.as_ptr(), ptr::null_mut());
            if handle.is_null() {
                return Err(Failure::of(sys::rd_kafka_last_error()));
            }
            let queue = sys::rd_kafka_queue_get_partition(native, name.as_ptr(), partition);
            if queue.is_null() {
                sys::rd_kafka_topic_destroy(handle);
                return Err(Failure::other("the partition has no queue"));
            }
            sys::rd_kafka_queue_cb_event_enable(queue, Some(wake), Arc::as_ptr(&waker).cast_mut().cast());
            Ok(Self {
                topic: handle,
                queue,
                name,
                partition,
                started: false,
                waker,
                scratch: Vec::new(),
                client,
            })
        }
    }

    pub(crate) fn waker(&self) -> &AtomicWaker {
        &self.waker
    }

    /// Fetches from `offset` on. What was fetched before is gone; blocks for a moment.
    pub(crate) fn fetch_from(&mut self, offset: i64) -> Result<(), Failure> {
        if self.started {
            // Waited for, because only then `position` has forgotten where it was.
            // SAFETY: topic and client are alive.
            match check(unsafe { sys::rd_kafka_seek(self.topic, self.partition, offset, 2_000) }) {
                Ok(()) => return Ok(()),
                // After a failed fetch there is nothing to seek in: stop and start again.
                Err(_) => self.stop(),
            }
        }
        // SAFETY: topic and client are alive.
        if unsafe { sys::rd_kafka_consume_start(self.topic, self.partition, offset) } == -1 {
            // SAFETY: reads this thread's last error.
            return Err(Failure::of(unsafe { sys::rd_kafka_last_error() }));
        }
        self.started = true;
        Ok(())
    }

    fn stop(&mut self) {
        if std::mem::take(&mut self.started) {
            // SAFETY: topic and client are alive. A failure means that nothing was fetched, which is what is wanted.
            let _stopped = unsafe { sys::rd_kafka_consume_stop(self.topic, self.partition) };
        }
    }

    /// Moves at most `most` fetched messages; does not wait. Returns how many.
    pub(crate) fn take(&mut self, into: &mut VecDeque<Message>, most: usize) -> usize {
        self.scratch.reserve(most);
        // SAFETY: the vector has room for `most` pointers, of which the call writes as many as it returns.
        let taken = unsafe {
            let taken = sys::rd_kafka_consume_batch_queue(self.queue, 0, self.scratch.as_mut_ptr(), most);
            let taken = usize::try_from(taken).unwrap_or(0);
            self.scratch.set_len(taken);
            taken
        };
        into.extend(self.scratch.drain(..).filter_map(NonNull::new).map(Message));
        taken
    }

    /// The offset after the last record or control record that was taken; none before the first.
    pub(crate) fn position(&self) -> Option<i64> {
        // SAFETY: the list is made, filled by the call and destroyed here.
        unsafe {
            let list = sys::rd_kafka_topic_partition_list_new(1);
            let one = sys::rd_kafka_topic_partition_list_add(list, self.name.as_ptr(), self.partition);
            let code = sys::rd_kafka_position(self.client.client().native_ptr(), list);
            let position = (*one).offset;
            sys::rd_kafka_topic_partition_list_destroy(list);
            check(code)
                .ok()
                .map(|()| position)
                .filter(|position| *position >= 0)
        }
    }
}

impl<C: ConsumerContext> Drop for Partition<C> {
    fn drop(&mut self) {
        self.stop();
        // SAFETY: the callback goes before its waker; queue and topic are given back once, before the client.
        unsafe {
            sys::rd_kafka_queue_cb_event_enable(self.queue, None, ptr::null_mut());
            sys::rd_kafka_queue_destroy(self.queue);
            sys::rd_kafka_topic_destroy(self.topic);
        }
    }
}

/// What is asked of a partition: -1 its end, -2 its first record, else the first record of that time or later.
pub(crate) type Asked = BTreeMap<(String, i32), i64>;

/// What was told of each.
pub(crate) type Told = BTreeMap<(String, i32), Result<i64, Failure>>;

/// The offsets of all partitions: one request to each broker that leads some of them. Blocks for `patience` at most;
/// `given_up` ends it sooner.
pub(crate) fn list_offsets<C: ConsumerContext>(
    client: &BaseConsumer<C>,
    asked: &Asked,
    committed_only: bool,
    patience: Duration,
    given_up: &AtomicBool,
) -> Result<Told, Failure> {
    /// How long to wait at a time, between looks at `given_up`.
    const SLICE_MS: i32 = 50;
    use sys::rd_kafka_IsolationLevel_t as Isolation;
    let isolation = if committed_only {
        Isolation::RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED
    } else {
        Isolation::RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED
    };
    let millis = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX).max(1);
    let native = client.client().native_ptr();
    // SAFETY: list, options, queue and event are made and destroyed here; the request copies what it needs of the first
    // two, and the queue may go before the answer came.
    unsafe {
        let list = sys::rd_kafka_topic_partition_list_new(i32::try_from(asked.len()).unwrap_or(0));
        for ((topic, partition), offset) in asked {
            let Ok(topic) = CString::new(topic.as_str()) else {
                continue;
            };
            (*sys::rd_kafka_topic_partition_list_add(list, topic.as_ptr(), *partition)).offset = *offset;
        }
        let options =
            sys::rd_kafka_AdminOptions_new(native, sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTOFFSETS);
        let error = sys::rd_kafka_AdminOptions_set_isolation_level(options, isolation);
        if !error.is_null() {
            sys::rd_kafka_error_destroy(error);
        }
        sys::rd_kafka_AdminOptions_set_request_timeout(options, millis, ptr::null_mut(), 0);
        let queue = sys::rd_kafka_queue_new(native);
        sys::rd_kafka_ListOffsets(native, list, options, queue);
        sys::rd_kafka_AdminOptions_destroy(options);
        sys::rd_kafka_topic_partition_list_destroy(list);
        // The request's own time-out answers first; a little longer only in case it does not.
        let mut slices = millis / SLICE_MS + 10;
        let mut event: *mut sys::rd_kafka_event_t = ptr::null_mut();
        while event.is_null() && slices > 0 && !given_up.load(Ordering::Relaxed) {
            event = sys::rd_kafka_queue_poll(queue, SLICE_MS);
            slices -= 1;
        }
        let answer = if event.is_null() {
            Err(Failure::of(
                sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR__TIMED_OUT,
            ))
        } else {
            offsets_of(event)
        };
        sys::rd_kafka_event_destroy(event);
        sys::rd_kafka_queue_destroy(queue);
        answer
    }
}

/// # Safety
/// `event` is the answer to a request for offsets, alive during the call.
unsafe fn offsets_of(event: *mut sys::rd_kafka_event_t) -> Result<Told, Failure> {
    // SAFETY: the event is alive by the caller's promise, and everything read here belongs to it.
    unsafe {
        if check(sys::rd_kafka_event_error(event)).is_err() {
            let text = CStr::from_ptr(sys::rd_kafka_event_error_string(event))
                .to_string_lossy()
                .into_owned();
            return Err(Failure {
                text,
                code: sys::rd_kafka_event_error(event).into(),
            });
        }
        let result = sys::rd_kafka_event_ListOffsets_result(event);
        if result.is_null() {
            return Err(Failure::other("the answer is none about offsets"));
        }
        let mut count = 0;
        let infos = sys::rd_kafka_ListOffsets_result_infos(result, &mut count);
        let mut offsets = BTreeMap::new();
        for at in 0..count {
            let one = &*sys::rd_kafka_ListOffsetsResultInfo_topic_partition(*infos.add(at));
            let topic = CStr::from_ptr(one.topic).to_string_lossy().into_owned();
            let answer = check(one.err).and_then(|()| match one.offset {
                offset if offset >= 0 => Ok(offset),
                _ => Err(Failure::other("no offset was told")),
            });
            offsets.insert((topic, one.partition), answer);
        }
        Ok(offsets)
    }
}
