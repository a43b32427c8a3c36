//! One connection of the lane, between two nodes: what waits to be sent, and what arrives in pieces.
//! Any thread sends; the lane's thread receives and goes on with what the kernel did not take at once.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, OnceLock};

use myelin_dds::{Guid, Release};
use myelin_shm::data_plane::publication::{SampleHold, SlotLoan};
use rustix::io::Errno;

use super::buffer::{Buffer, Pool};
use super::frame::{Frame, HEADER_BYTES, Head};
use super::pacer::Pacer;
use super::socket::Socket;
use super::tls::{RECORD_BYTES_MAX, TlsStream};
use crate::network::flow_control::FlowControl;
use crate::network::lock;
use crate::network::reader::LaneTarget;

/// The bytes' way over a connection.
pub(super) enum Stream {
    Plain(Socket),
    Tls(Box<TlsStream>),
}

impl Stream {
    pub(super) fn new(socket: Socket, tls: Option<rustls::Connection>) -> Stream {
        match tls {
            None => Stream::Plain(socket),
            Some(connection) => Stream::Tls(Box::new(TlsStream::new(socket, connection))),
        }
    }

    fn socket(&self) -> &Socket {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(tls) => tls.socket(),
        }
    }

    fn write(&self, parts: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.send(parts),
            Stream::Tls(tls) => tls.write(parts),
        }
    }

    /// Sends what was taken and has not gone.
    fn flush(&self) {
        if let Stream::Tls(tls) = self {
            tls.flush();
        }
    }

    fn read(&self, into: &mut [u8]) -> rustix::io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(into),
            Stream::Tls(tls) => tls.read(into),
        }
    }

    fn read_uninit(&self, into: &mut [MaybeUninit<u8>]) -> rustix::io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read_uninit(into),
            Stream::Tls(tls) => tls.read_uninit(into),
        }
    }

    pub(super) fn tls(&self) -> Option<&TlsStream> {
        if let Stream::Tls(tls) = self { Some(tls) } else { None }
    }

    fn set_low_water(&self, bytes: usize) {
        self.socket().set_low_water(match self {
            Stream::Plain(_) => bytes,
            // A part of a record may have been read.
            Stream::Tls(_) => bytes.saturating_sub(RECORD_BYTES_MAX).max(1),
        });
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }
}

/// A sample under way. It counts for its publisher's limit until it is dropped.
pub(in crate::network) struct InFlight {
    pub(in crate::network) writer: Guid,
    pub(in crate::network) number: u64,
    pub(in crate::network) head: Head,
    /// The bytes of the payload.
    bytes: usize,
    flow: Arc<FlowControl>,
    /// The payload, if a connection does not take it at once, or if it may be sent again.
    payload: OnceLock<Option<Kept>>,
}

/// Where the payload of a sample under way is.
pub(in crate::network) enum Kept {
    /// Where the publisher has written it.
    Held(SampleHold),
    Copy(Buffer),
}

impl Deref for Kept {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Kept::Held(hold) => hold,
            Kept::Copy(buffer) => buffer,
        }
    }
}

impl InFlight {
    pub(in crate::network) fn new(
        writer: Guid,
        number: u64,
        head: Head,
        bytes: usize,
        flow: &Arc<FlowControl>,
    ) -> Arc<InFlight> {
        flow.enter(bytes as u64);
        let (flow, payload) = (flow.clone(), OnceLock::new());
        Arc::new(InFlight { writer, number, head, bytes, flow, payload })
    }

    /// Keeps the payload from now on.
    pub(in crate::network) fn hold(&self, hold: SampleHold) {
        let _ = self.payload.set(Some(Kept::Held(hold)));
    }

    /// Its payload, if it was kept.
    pub(in crate::network) fn payload(&self) -> Option<&[u8]> {
        self.payload.get()?.as_deref()
    }
}

/// A sample that DDS sends again is under way until all readers have acknowledged it.
impl Release for InFlight {
    fn released(&self, _bytes: usize) {}
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.flow.released(self.bytes);
    }
}

/// How a publisher's samples go by a connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::network) struct Delivery {
    /// Whether samples are kept until the other side has acknowledged them.
    pub(in crate::network) is_acknowledged: bool,
    /// So many of the publisher's samples wait at most, if they are not; the oldest are dropped.
    pub(in crate::network) depth: usize,
}

/// A connection to another node.
pub(in crate::network) struct Link {
    stream: Stream,
    output: Mutex<Output>,
}

/// What waits to be sent.
#[derive(Default)]
struct Output {
    queue: VecDeque<Item>,
    /// How many bytes of the first one have been sent.
    sent: usize,
    unacknowledged: VecDeque<Arc<InFlight>>,
    is_closed: bool,
    pacer: Pacer,
    /// Samples have been dropped since the pacer was asked.
    has_dropped: bool,
}

enum Item {
    Control([u8; HEADER_BYTES]),
    Sample([u8; HEADER_BYTES], Arc<InFlight>, Delivery),
}

impl Item {
    fn parts(&self) -> [&[u8]; 2] {
        match self {
            Item::Control(header) => [header, &[]],
            Item::Sample(header, sample, _) => [header, sample.payload().unwrap_or_default()],
        }
    }

    fn sample(&self) -> Option<&Arc<InFlight>> {
        if let Item::Sample(_, sample, _) = self { Some(sample) } else { None }
    }

    fn of(&self, writer: &Guid) -> Option<&Arc<InFlight>> {
        self.sample().filter(|sample| sample.writer == *writer)
    }

    fn droppable_bytes(&self) -> usize {
        match self {
            Item::Sample(_, sample, delivery) if !delivery.is_acknowledged => sample.bytes,
            _ => 0,
        }
    }
}

impl Link {
    pub(super) fn new(stream: Stream) -> Arc<Link> {
        Arc::new(Link { stream, output: Mutex::default() })
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Sends a frame without a body.
    pub(in crate::network) fn control(&self, frame: &Frame) {
        let mut output = lock(&self.output);
        if !output.is_closed {
            output.queue.push_back(Item::Control(frame.encode()));
            output.flush(&self.stream);
        }
    }

    /// Sends a sample, straight from its memory as far as the kernel takes it now. The lane's thread
    /// sends the rest, from its memory if it is held, or else from a copy.
    pub(in crate::network) fn send(
        &self,
        sample: &Arc<InFlight>,
        payload: &[u8],
        delivery: Delivery,
        pool: &Arc<Pool>,
    ) {
        let header = Frame::Sample {
            writer: sample.writer,
            number: sample.number,
            head: sample.head,
            bytes: sample.bytes as u64,
            wants_acknowledgement: delivery.is_acknowledged,
        };
        let header = header.encode();
        let mut output = lock(&self.output);
        if sample.bytes >= PACED_BYTES_MIN {
            output.pace(&self.stream);
        }
        let sent = match output.is_closed || !output.queue.is_empty() {
            true => 0,
            false => self.write_all([&header, payload]),
        };
        let is_sent = sent == header.len() + sample.bytes;
        if is_sent && !delivery.is_acknowledged {
            return;
        }
        let kept = sample.payload.get_or_init(|| Buffer::of(pool, &[payload]).map(Kept::Copy));
        if kept.is_none() && !is_sent {
            // Without memory the rest cannot follow, nor anything behind it.
            if sent > 0 {
                self.stream.socket().close();
            }
            return;
        }
        if delivery.is_acknowledged {
            output.unacknowledged.push_back(sample.clone());
        }
        if is_sent || output.is_closed {
            return;
        }
        output.make_room(&sample.writer, sample.bytes, delivery);
        if output.queue.is_empty() {
            output.sent = sent;
        }
        output.queue.push_back(Item::Sample(header, sample.clone(), delivery));
    }

    /// Writes until all is sent or the kernel takes no more; returns how much.
    fn write_all(&self, parts: [&[u8]; 2]) -> usize {
        let all: usize = parts.iter().map(|part| part.len()).sum();
        let mut sent = 0;
        while sent < all {
            let mut slices = parts.map(IoSlice::new);
            let mut left = &mut slices[..];
            IoSlice::advance_slices(&mut left, sent);
            match self.stream.write(left) {
                Ok(more) => sent += more,
                Err(Errno::INTR) => {}
                // The kernel reports when it takes more; and faults, to the lane's thread.
                Err(_) => return sent,
            }
        }
        sent
    }

    /// Goes on sending. Called by the lane's thread.
    pub(super) fn flush(&self) {
        lock(&self.output).flush(&self.stream);
    }

    /// The other side has a sample.
    pub(super) fn acknowledge(&self, writer: &Guid, number: u64) {
        let mut output = lock(&self.output);
        let is_it = |it: &Arc<InFlight>| it.writer == *writer && it.number == number;
        let sample = output.unacknowledged.iter().position(is_it);
        let sample = sample.and_then(|at| output.unacknowledged.remove(at));
        drop(output);
        drop(sample); // this wakes the publisher
    }

    /// Takes a publisher's samples that the other side has not acknowledged.
    pub(in crate::network) fn take_unacknowledged(&self, writer: &Guid) -> Vec<Arc<InFlight>> {
        let mut output = lock(&self.output);
        let (taken, rest) = std::mem::take(&mut output.unacknowledged)
            .into_iter()
            .partition::<VecDeque<_>, _>(|it| it.writer == *writer);
        output.unacknowledged = rest;
        taken.into()
    }

    /// The oldest sample of a publisher that the other side has not acknowledged.
    pub(in crate::network) fn oldest(&self, writer: &Guid) -> Option<u64> {
        let output = lock(&self.output);
        output.unacknowledged.iter().find(|it| it.writer == *writer).map(|it| it.number)
    }

    /// Drops what waits of a publisher, and says so to the other side if it `tells`.
    pub(in crate::network) fn end(&self, writer: &Guid, tells: bool) {
        let unacknowledged = self.take_unacknowledged(writer);
        let mut output = lock(&self.output);
        let Output { queue, sent, .. } = &mut *output;
        // One that has begun must go on.
        let begun = if *sent > 0 { queue.pop_front() } else { None };
        let (dropped, rest) = std::mem::take(queue)
            .into_iter()
            .partition::<VecDeque<_>, _>(|item| item.of(writer).is_some());
        *queue = rest;
        if let Some(begun) = begun {
            queue.push_front(begun);
        }
        drop(output);
        drop((unacknowledged, dropped)); // this wakes the publisher
        if tells {
            self.control(&Frame::Ended { writer: *writer });
        }
    }

    /// Ends the connection. What is unacknowledged stays.
    pub(super) fn close(&self) {
        let mut output = lock(&self.output);
        output.is_closed = true;
        let dropped = std::mem::take(&mut output.queue);
        drop(output);
        drop(dropped);
        self.stream.socket().close();
    }
}

impl Output {
    fn flush(&mut self, stream: &Stream) {
        while let Some(item) = self.queue.front() {
            let parts = item.parts();
            let all = parts[0].len() + parts[1].len();
            let mut slices = parts.map(IoSlice::new);
            let mut left = &mut slices[..];
            IoSlice::advance_slices(&mut left, self.sent);
            match stream.write(left) {
                Ok(more) => self.sent += more,
                Err(Errno::INTR) => {}
                Err(_) => return self.pace(stream),
            }
            if self.sent == all {
                self.queue.pop_front();
                self.sent = 0;
            }
        }
        stream.flush();
    }

    /// Finds how fast to send.
    fn pace(&mut self, stream: &Stream) {
        let Some(progress) = stream.socket().progress() else { return };
        let mut samples = self.queue.iter().filter_map(Item::sample);
        let first = samples.next();
        let behind =
            first.map_or(0, |first| samples.filter(|it| it.writer == first.writer).count());
        let is_late = std::mem::take(&mut self.has_dropped) || behind >= LATE;
        if self.pacer.observe(progress, is_late) {
            stream.socket().pace(&self.pacer);
        }
    }

    /// Drops the oldest samples that nobody acknowledges: those of a writer beyond its depth, and any
    /// beyond the bytes that may wait. One that has begun goes on.
    fn make_room(&mut self, writer: &Guid, bytes: usize, delivery: Delivery) {
        let first = usize::from(self.sent > 0);
        if !delivery.is_acknowledged {
            let of_writer = |item: &Item| item.of(writer).is_some();
            let waiting = self.queue.iter().skip(first).filter(|item| of_writer(item)).count();
            for _ in delivery.depth.max(1)..=waiting {
                let oldest = self.queue.iter().skip(first).position(of_writer);
                let dropped = oldest.and_then(|at| self.queue.remove(first + at));
                self.has_dropped |= dropped.is_some();
            }
        }
        let mut waiting: usize = self.queue.iter().map(Item::droppable_bytes).sum();
        while waiting + bytes > QUEUE_BYTES_MAX {
            let is_droppable = |item: &Item| item.droppable_bytes() > 0;
            let oldest = self.queue.iter().skip(first).position(is_droppable);
            let Some(item) = oldest.and_then(|at| self.queue.remove(first + at)) else { return };
            self.has_dropped = true;
            waiting -= item.droppable_bytes();
        }
    }
}

/// A frame that arrives in pieces.
pub(super) struct Incoming {
    header: [u8; HEADER_BYTES],
    filled: usize,
    body: Option<Body>,
    /// What the kernel waits for.
    low_water: usize,
}

struct Body {
    frame: Frame,
    bytes: usize,
    memory: Memory,
    filled: usize,
}

/// Where an arriving sample goes.
pub(super) enum Memory {
    /// Straight into the queue of the only subscriber.
    Slot(SlotLoan, LaneTarget),
    Buffer(Buffer),
    /// Nobody wants it.
    None,
}

/// What has arrived.
pub(super) enum Received {
    /// A frame, with the body of a sample.
    Frame(Frame, Memory),
    /// A part of one.
    Part,
}

/// Why nothing more arrives.
pub(super) enum Ended {
    /// For now.
    Empty,
    /// For ever: the connection has ended, or what came is not understood.
    Gone,
}

impl Incoming {
    pub(super) fn new() -> Incoming {
        Incoming { header: [0; HEADER_BYTES], filled: 0, body: None, low_water: 1 }
    }

    /// Nothing is left to read: says how much to wait for.
    pub(super) fn rest(&mut self, stream: &Stream) {
        let missing = self.body.as_ref().map_or(1, |body| body.bytes - body.filled);
        let low_water = missing.clamp(1, LOW_WATER_MAX);
        if low_water != self.low_water {
            self.low_water = low_water;
            stream.set_low_water(low_water);
        }
    }

    /// Reads some. `wanted` makes the memory for a sample, once its size is known and before any of
    /// its bytes is read; without memory they are read and dropped. It fails if the peer must not
    /// send samples.
    pub(super) fn read(
        &mut self,
        stream: &Stream,
        wanted: impl FnOnce(&Frame, usize) -> Result<Memory, Ended>,
    ) -> Result<Received, Ended> {
        if let Some(body) = &mut self.body {
            let left = body.bytes - body.filled;
            let read = match &mut body.memory {
                Memory::Slot(slot, _) => {
                    let room = &mut slot.bytes_mut()[body.filled..];
                    some(|| stream.read(&mut *room))?
                }
                Memory::Buffer(buffer) => {
                    buffer.fill(left, |room| some(|| stream.read_uninit(&mut *room)))?
                }
                Memory::None => {
                    let mut scratch = [0; SCRATCH_BYTES];
                    let most = left.min(SCRATCH_BYTES);
                    some(|| stream.read(&mut scratch[..most]))?
                }
            };
            body.filled += read;
            if body.filled < body.bytes {
                return Ok(Received::Part);
            }
            let Body { frame, memory, .. } = self.body.take().expect("as above");
            return Ok(Received::Frame(frame, memory));
        }
        self.filled += some(|| stream.read(&mut self.header[self.filled..]))?;
        if self.filled < HEADER_BYTES {
            return Ok(Received::Part);
        }
        self.filled = 0;
        let frame = Frame::decode(&self.header).ok_or(Ended::Gone)?;
        let Frame::Sample { bytes, .. } = frame else {
            return Ok(Received::Frame(frame, Memory::None));
        };
        let bytes = usize::try_from(bytes).map_err(|_| Ended::Gone)?;
        let memory = wanted(&frame, bytes)?;
        self.body = Some(Body { frame, bytes, memory, filled: 0 });
        Ok(Received::Part)
    }
}

/// Reads some bytes.
fn some(mut read: impl FnMut() -> rustix::io::Result<usize>) -> Result<usize, Ended> {
    loop {
        match read() {
            Ok(0) => return Err(Ended::Gone),
            Ok(read) => return Ok(read),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Err(Ended::Empty),
            Err(_) => return Err(Ended::Gone),
        }
    }
}

/// The most that waits for a peer and may be dropped.
const QUEUE_BYTES_MAX: usize = 64 << 20;
const SCRATCH_BYTES: usize = 16 << 10;
/// A tenth of what fills a link of 1 Gbit/s in 20 ms.
const LOW_WATER_MAX: usize = 256 << 10;
/// Samples come faster than they go if so many of a publisher wait behind one. The last two may come
/// together.
const LATE: usize = 2;
/// A sample that may make a queue on a link of 1 Gbit/s: before it goes, what became of those before
/// it is looked at.
const PACED_BYTES_MIN: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::time::Duration;

    use super::super::Connections;
    use super::*;

    const WRITER: Guid = [1; 16];
    const BYTES: usize = 1 << 20;

    /// A link, and the other end of its connection.
    fn pair() -> (Arc<Link>, Stream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (theirs, _) = listener.accept().unwrap();
        let stream = |socket: TcpStream| {
            socket.set_nonblocking(true).unwrap();
            let patience = Duration::from_secs(60);
            let how = Connections { patience, dscp: 0, identity: None };
            Stream::new(Socket::new(socket.into(), &how).unwrap(), None)
        };
        (Link::new(stream(ours)), stream(theirs))
    }

    struct Sender {
        link: Arc<Link>,
        flow: Arc<FlowControl>,
        pool: Arc<Pool>,
        delivery: Delivery,
    }

    impl Sender {
        fn new(link: &Arc<Link>, is_acknowledged: bool) -> Sender {
            let delivery = Delivery { is_acknowledged, depth: 2 };
            Sender { link: link.clone(), flow: Arc::default(), pool: Arc::default(), delivery }
        }

        fn send(&self, number: u64) {
            let head = Head::new(b"head").unwrap();
            let sample = InFlight::new(WRITER, number, head, BYTES, &self.flow);
            let payload = vec![number as u8; BYTES];
            self.link.send(&sample, &payload, self.delivery, &self.pool);
        }
    }

    /// Receives until the link has nothing more to send and all has arrived, up to `last`.
    fn receive(link: &Link, stream: &Stream, is_last: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let (mut incoming, mut frames) = (Incoming::new(), Vec::new());
        let pool = Arc::default();
        loop {
            link.flush();
            let memory = |bytes| Memory::Buffer(Buffer::new(&pool, bytes).unwrap());
            match incoming.read(stream, |_, bytes| Ok(memory(bytes))) {
                Ok(Received::Part) | Err(Ended::Empty) => {}
                Ok(Received::Frame(frame, body)) => {
                    if let (Frame::Sample { number, head, .. }, Memory::Buffer(body)) =
                        (frame, body)
                    {
                        assert_eq!((head.bytes(), body.len()), (&b"head"[..], BYTES));
                        assert!(body.iter().all(|byte| *byte == number as u8), "torn");
                    }
                    frames.push(frame);
                    if is_last(&frame) {
                        return frames;
                    }
                }
                Err(Ended::Gone) => panic!("{frames:?}"),
            }
        }
    }

    fn number(frame: &Frame) -> Option<u64> {
        if let Frame::Sample { number, .. } = frame { Some(*number) } else { None }
    }

    #[test]
    fn a_peer_that_does_not_read_keeps_the_newest_samples() {
        let (link, stream) = pair();
        let sender = Sender::new(&link, false);
        (0..100).for_each(|number| sender.send(number));
        assert!(lock(&link.output).queue.len() <= 1 + sender.delivery.depth);
        let frames = receive(&link, &stream, |frame| number(frame) == Some(99));
        let numbers: Vec<u64> = frames.iter().filter_map(number).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next) && numbers.len() < 100);
        assert!(sender.flow.is_idle(), "what was dropped or sent is not under way");
    }

    #[test]
    fn a_sample_is_under_way_until_it_is_acknowledged() {
        let (link, stream) = pair();
        let sender = Sender::new(&link, true);
        (0..20).for_each(|number| sender.send(number));
        let frames = receive(&link, &stream, |frame| number(frame) == Some(19));
        assert_eq!(frames.len(), 20);
        assert_eq!(link.oldest(&WRITER), Some(0));
        link.acknowledge(&WRITER, 0);
        link.acknowledge(&[9; 16], 1);
        assert_eq!(link.oldest(&WRITER), Some(1));
        link.close();
        sender.send(20);
        let kept: Vec<u64> =
            link.take_unacknowledged(&WRITER).iter().map(|sample| sample.number).collect();
        assert_eq!(kept, Vec::from_iter(1..=20), "also one that came too late");
        assert!(sender.flow.is_idle());
    }

    #[test]
    fn a_writer_that_ends_drops_what_waits_and_says_so() {
        let (link, stream) = pair();
        let sender = Sender::new(&link, true);
        (0..20).for_each(|number| sender.send(number));
        link.end(&WRITER, true);
        let frames = receive(&link, &stream, |frame| matches!(frame, Frame::Ended { .. }));
        assert!(frames.len() < 21, "it had not sent all");
        assert!(sender.flow.is_idle());
    }
}
