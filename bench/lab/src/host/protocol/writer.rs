//! Where frames of several threads go, one after the other.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;

use super::super::lock;
use super::{Request, frame};

/// One end's output. It is closed for all that have a clone of it.
#[derive(Clone)]
pub(in super::super) struct Writer(Arc<Mutex<Option<Box<dyn Write + Send>>>>);

impl Writer {
    pub(in super::super) fn new(output: impl Write + Send + 'static) -> Self {
        Writer(Arc::new(Mutex::new(Some(Box::new(output)))))
    }

    /// Sends a frame, unless it is closed. That the other end is gone shows by its closed output, too.
    pub(in super::super) fn send(&self, header: &impl Serialize, body: &[u8]) -> io::Result<()> {
        lock(&self.0).as_mut().map_or(Ok(()), |output| frame::write(output, header, body))
    }

    /// The end of the other's input, which is its word to end.
    pub(in super::super) fn close(&self) {
        *lock(&self.0) = None;
    }

    /// Has a thread say now and then that the lab is there: an agent whose connection has broken
    /// without a word could not know otherwise.
    pub(in super::super) fn keep_alive(&self) {
        let writer = self.clone();
        std::thread::spawn(move || {
            while lock(&writer.0).is_some() {
                let _ = writer.send(&Request::Alive, &[]);
                std::thread::sleep(ALIVE);
            }
        });
    }
}

/// Often enough for an agent, which waits for 30 s.
const ALIVE: Duration = Duration::from_secs(5);
