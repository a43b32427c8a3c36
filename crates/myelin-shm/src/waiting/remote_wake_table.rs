//! A publisher's side of another node's [`WakeTable`](crate::waiting::wake_table::WakeTable).

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};

use crate::error::Error;
use crate::layout::{
    READY_TABLE_BYTES, ReadyTable, SET_HEADS_BYTES, SET_LINES, SETS_PER_LINE, SetHeads,
};
use crate::os::segment::Segment;
use crate::waiting::notify::Notifier;
use crate::waiting::wake_pipe::WakePipeWriter;
use crate::waiting::wake_table::notify;

/// The table. All publishers of a node share one for each other node.
#[derive(Debug)]
pub(crate) struct RemoteWakeTable {
    heads: Segment,
    ready: Segment,
    pipe: WakePipeWriter,
    /// One for each line. Sets of one line share it: it notes a sleep of one of them, and no two
    /// sleeps are the same.
    notifiers: [Notifier; SET_LINES],
}

impl RemoteWakeTable {
    fn map(passed: WakeTableDescriptors) -> Result<Arc<Self>, Error> {
        let heads = Segment::map_theirs(passed.heads.as_fd(), SET_HEADS_BYTES)?;
        let ready = Segment::map_shared(passed.ready.as_fd(), READY_TABLE_BYTES)?;
        let pipe = WakePipeWriter::check(passed.pipe)?;
        let notifiers = std::array::from_fn(|_| Notifier::new());
        Ok(Arc::new(RemoteWakeTable { heads, ready, pipe, notifiers }))
    }

    /// P8 for subscriber `number`, which is in `set`. Whether the set will certainly look.
    pub(crate) fn notify(&self, set: usize, number: u32) -> bool {
        // SAFETY: atomics within checked segments; the heads are loaded only.
        let (heads, ready): (&SetHeads, &ReadyTable) =
            unsafe { (self.heads.at(0), self.ready.at(0)) };
        notify(heads, ready, &self.pipe, set, number, &self.notifiers[set / SETS_PER_LINE])
    }
}

/// A table in the form in which it is passed to a publisher.
#[derive(Debug)]
pub struct WakeTableDescriptors {
    /// The segment of the sets' heads.
    pub heads: OwnedFd,
    /// The segment of the ready table.
    pub ready: OwnedFd,
    /// Makes the sets' descriptors readable.
    pub pipe: OwnedFd,
}

/// The tables that a node's publishers have been passed, by their files.
#[derive(Debug, Default)]
pub struct RemoteWakeTables(Vec<(Key, Weak<RemoteWakeTable>)>);

type Key = [(u64, u64); 3];

impl RemoteWakeTables {
    /// Maps and checks a table that another node has passed, unless that has been done already. A
    /// mapping never changes its file, so the file identifies it.
    pub(crate) fn map(
        &mut self,
        passed: WakeTableDescriptors,
    ) -> Result<Arc<RemoteWakeTable>, Error> {
        if cfg!(any(miri, loom)) {
            return RemoteWakeTable::map(passed); // no files
        }
        let key = [file(&passed.heads)?, file(&passed.ready)?, file(&passed.pipe)?];
        self.0.retain(|(_, view)| view.strong_count() > 0);
        let known = self.0.iter().find(|(known, _)| *known == key);
        if let Some(view) = known.and_then(|(_, view)| view.upgrade()) {
            return Ok(view);
        }
        let view = RemoteWakeTable::map(passed)?;
        self.0.push((key, Arc::downgrade(&view)));
        Ok(view)
    }
}

fn file(fd: &OwnedFd) -> Result<(u64, u64), Error> {
    let file = rustix::fs::fstat(fd);
    let file = file.map_err(|error| Error::system("looking at a segment", error))?;
    Ok((file.st_dev, file.st_ino))
}
