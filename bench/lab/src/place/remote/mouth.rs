//! What the lab says to one agent, and that it is there.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::frame;
use super::super::words::Request;
use super::lock;

/// Where requests go; closed when it is dropped.
pub(super) struct Mouth(Arc<Mutex<Option<Box<dyn Write + Send>>>>);

impl Mouth {
    /// Has a thread say now and then that the lab is there: an agent whose connection has broken
    /// without a word could not know otherwise.
    pub(super) fn new(input: Box<dyn Write + Send>) -> Self {
        let input = Arc::new(Mutex::new(Some(input)));
        let shared = Arc::clone(&input);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(ALIVE);
                let Some(input) = &mut *lock(&shared) else { break };
                // An agent that is gone shows by its closed output, not here.
                let _ = frame::write(input, &Request::Alive, &[]);
            }
        });
        Mouth(input)
    }

    /// Says `request`, unless it is closed.
    pub(super) fn say(&self, request: &Request) {
        if let Some(input) = &mut *lock(&self.0) {
            // As above.
            let _ = frame::write(input, request, &[]);
        }
    }

    /// The end of the agent's input, which is its word to end.
    pub(super) fn close(&self) {
        *lock(&self.0) = None;
    }
}

impl Drop for Mouth {
    fn drop(&mut self) {
        self.close();
    }
}

/// Often enough for an agent, which waits for 30 s.
const ALIVE: Duration = Duration::from_secs(5);
