//! Across hosts: reads the clock of pong's host over the measured path.
//!
//! ```text
//! index 0, ping's host       asked ──────▶ heard        index 1, pong's host
//!                                          answered
//!                         returned ◀──────
//!
//! burst │ ···  ·  · ··   ·  ···  ·   · │ burst
//! start   now and then, at random        stop
//! ```
//! Stamps are taken in user space, on the clock that also stamps messages. An exchange proves that
//! the clocks differ by at most answered − returned and at least heard − asked. A late scheduler or
//! a core that wakes slowly makes an exchange longer, but not wrong. The lab relies on the shortest
//! exchanges, so neither process is pinned or gets priority, which would take resources from the
//! measured system. Requests come in threes, each as soon as the previous one is answered: the
//! first wakes both hosts, and the last finds them awake. They come at random times, so that they
//! do not coincide with every message of a rate or with none. There are some 30 requests of 64
//! bytes per second. At about 15 µs of CPU each on either host they take less than a thousandth of
//! a core.

mod request;

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use self::request::{REQUEST_BYTES, Request, stamp};
use crate::arrivals::mix;
use crate::clock::Clock;
use crate::error::Error;
use crate::network::CLOCK;
use crate::protocol::{Done, Exchange, Network};

/// The side that sends requests.
pub(crate) struct Client {
    socket: UdpSocket,
    clock: Clock,
    secret: u64,
    done: Done,
    kept: Kept,
}

impl Client {
    /// Binds to its port; sends no request yet.
    pub(crate) fn new(network: &Network, clock: Clock) -> Result<Self, Error> {
        let socket = bind(network)?;
        let peer = network.peer_at(CLOCK);
        // From here on the kernel drops packets from elsewhere.
        socket.connect(peer).map_err(|error| failed("connecting to", peer, &error))?;
        // It needs not be secret, but no earlier process may have used it.
        let secret = mix(u64::from(std::process::id()), Clock::Monotonic.now());
        Ok(Client { socket, clock, secret, done: Done::default(), kept: Kept::default() })
    }

    /// Sends requests until `stop` is set, and a last burst after that.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Done {
        self.done.begin_ns = self.clock.now();
        self.burst();
        // ORDER: Relaxed, the flag carries nothing else.
        while !stop.load(Ordering::Relaxed) {
            park_timeout(Duration::from_nanos(self.spacing_ns()));
            self.train();
        }
        self.burst();
        self.done.end_ns = self.clock.now();
        self.done.lost = self.done.sent - self.done.received;
        self.done.exchanges = self.kept.exchanges;
        self.done
    }

    fn burst(&mut self) {
        let end = Instant::now() + BURST_LIMIT;
        for _ in 0..BURST_TRAINS {
            if Instant::now() >= end {
                return;
            }
            self.train();
            std::thread::sleep(BURST_SPACING);
        }
    }

    /// Requests back to back, until one is not answered.
    fn train(&mut self) {
        for _ in 0..TRAIN {
            match self.ask() {
                Some(exchange) => self.kept.add(exchange),
                None => break,
            }
        }
    }

    /// One exchange; `None` if no answer came in time. A network that is down, or another side that
    /// has not started yet, is no error.
    fn ask(&mut self) -> Option<Exchange> {
        let request = Request { secret: self.secret, number: self.done.sent };
        self.done.sent += 1;
        let deadline = Instant::now() + ANSWER_LIMIT;
        let bytes = request.to_bytes();
        let asked_ns = self.clock.now();
        self.socket.send(&bytes).ok()?;
        loop {
            let left = deadline.checked_duration_since(Instant::now())?;
            self.socket.set_read_timeout(Some(left.max(Duration::from_micros(1)))).ok()?;
            let mut bytes = [0; REQUEST_BYTES + 1];
            let length = match self.socket.recv(&mut bytes) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return None,
            };
            let returned_ns = self.clock.now();
            if let Some([heard_ns, answered_ns]) = request.stamps(&bytes[..length]) {
                self.done.received += 1;
                return Some(Exchange { asked_ns, heard_ns, answered_ns, returned_ns });
            }
        }
    }

    /// A random pause, uniformly distributed.
    fn spacing_ns(&self) -> u64 {
        SPACING_NS_MIN + mix(self.secret, self.done.sent) % (SPACING_NS_MAX - SPACING_NS_MIN)
    }
}

/// The side that answers; it sleeps in the kernel otherwise.
pub(crate) struct Server {
    socket: UdpSocket,
    clock: Clock,
    network: Network,
}

impl Server {
    /// Binds to its port; answers from [`run`](Self::run) on.
    pub(crate) fn new(network: &Network, clock: Clock) -> Result<Self, Error> {
        let socket = bind(network)?;
        socket.set_read_timeout(Some(STOP_CHECK))?;
        Ok(Server { socket, clock, network: network.clone() })
    }

    /// Answers until `stop` is set, and then until no request has come for [`QUIET`].
    pub(crate) fn run(self, stop: &AtomicBool) -> Done {
        let mut done = Done { begin_ns: self.clock.now(), ..Done::default() };
        let mut stopping: Option<Instant> = None;
        let mut last = Instant::now();
        loop {
            // ORDER: Relaxed, the flag carries nothing else.
            if stop.load(Ordering::Relaxed) {
                let since = *stopping.get_or_insert_with(Instant::now);
                if last.max(since).elapsed() >= QUIET || since.elapsed() >= LINGER_LIMIT {
                    break;
                }
            }
            if self.answer_one(&mut done) {
                last = Instant::now();
            }
        }
        done.end_ns = self.clock.now();
        done
    }

    /// Whether a request came within [`STOP_CHECK`].
    fn answer_one(&self, done: &mut Done) -> bool {
        let mut bytes = [0; REQUEST_BYTES + 1];
        let received = self.socket.recv_from(&mut bytes);
        let heard_ns = self.clock.now();
        let (length, from) = match received {
            Ok(received) => received,
            Err(error) => {
                if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) {
                    std::thread::sleep(STOP_CHECK); // then see whether the network is back
                }
                return false;
            }
        };
        let request = Request::read(&bytes[..length]);
        let Some(request) = request.filter(|_| from.ip() == self.network.peer) else {
            return false;
        };
        done.received += 1;
        let mut answer = request.answer(heard_ns);
        stamp(&mut answer, self.clock.now());
        // An answer that cannot be sent counts as lost.
        done.sent += u64::from(self.socket.send_to(&answer, from).is_ok());
        true
    }
}

fn bind(network: &Network) -> Result<UdpSocket, Error> {
    let own = network.own_at(CLOCK);
    UdpSocket::bind(own).map_err(|error| failed("binding", own, &error))
}

fn failed(doing: &str, address: SocketAddr, error: &io::Error) -> Error {
    Error::new(format!("the port of the clock exchange: {doing} {address}/udp: {error}"))
        .remedy("choose another port for the run, or check that the host has this address")
}

/// A selection of the exchanges, evenly over the length of a run: the shortest of every few in a
/// row. The dropped ones would not have been used.
#[derive(Default)]
struct Kept {
    exchanges: Vec<Exchange>,
    /// How many exchanges the last of `exchanges` represents.
    last: u32,
    /// Each entry represents up to 2 to the power of this.
    doublings: u32,
}

impl Kept {
    fn add(&mut self, exchange: Exchange) {
        if let Some(last) = self.exchanges.last_mut()
            && self.last < 1 << self.doublings
        {
            self.last += 1;
            *last = quicker(*last, exchange);
            return;
        }
        if self.exchanges.len() == EXCHANGES_MAX {
            let (pairs, _) = self.exchanges.as_chunks();
            self.exchanges = pairs.iter().map(|[one, other]| quicker(*one, *other)).collect();
            self.doublings += 1;
        }
        self.exchanges.push(exchange);
        self.last = 1;
    }
}

fn quicker(one: Exchange, other: Exchange) -> Exchange {
    if other.delay_ns() < one.delay_ns() { other } else { one }
}

/// Requests of a train, one after the other.
const TRAIN: u32 = 3;
/// Trains of a burst: some 200 requests in a third of a second.
const BURST_TRAINS: u32 = 64;
const BURST_SPACING: Duration = Duration::from_millis(5);
/// Limit of a burst over a slow path or one with much loss.
const BURST_LIMIT: Duration = Duration::from_millis(700);
/// Least time between the trains of a run; there are 10 per second on average.
const SPACING_NS_MIN: u64 = 50_000_000;
const SPACING_NS_MAX: u64 = 150_000_000;
/// Slower answers are ignored; they would say little.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);
/// Limit of the stored exchanges, an even number: enough for all of more than two minutes.
const EXCHANGES_MAX: usize = 4_096;
/// How often a side without requests checks whether to stop.
const STOP_CHECK: Duration = Duration::from_millis(200);
/// The other side sends its last burst after its own stop. Counting an open request, the burst and
/// its last request, it is done in less than two seconds.
const QUIET: Duration = Duration::from_millis(400);
const LINGER_LIMIT: Duration = Duration::from_millis(1_800);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Shift;

    fn exchange(asked_ns: u64, away_ns: u64) -> Exchange {
        let returned_ns = asked_ns + away_ns;
        Exchange { asked_ns, heard_ns: 5, answered_ns: 7, returned_ns }
    }

    fn network(own: &str, peer: &str, port: u16) -> Network {
        let [own, peer] = [own, peer].map(|address| address.parse().unwrap());
        Network { interface: "lo".into(), own, peer, port }
    }

    /// Ports that are free on all of 127.0.0.0/8; the last of them is the clock's.
    fn free_port() -> u16 {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.local_addr().unwrap().port() - CLOCK
    }

    #[test]
    fn a_shifted_clock_is_measured_despite_stray_datagrams() {
        let port = free_port();
        let shift = Shift::new(1_500_000_000, 80.0).unwrap();
        let server = network("127.0.0.2", "127.0.0.1", port);
        let server = Server::new(&server, Clock::Shifted(shift)).unwrap();
        let client =
            Client::new(&network("127.0.0.1", "127.0.0.2", port), Clock::Monotonic).unwrap();
        let (stop_client, stop_server) = (AtomicBool::new(false), AtomicBool::new(false));
        let (asked, told) = std::thread::scope(|scope| {
            let telling = scope.spawn(|| server.run(&stop_server));
            let asking = scope.spawn(|| client.run(&stop_client));
            let stranger = UdpSocket::bind("127.0.0.3:0").unwrap();
            stranger.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            let request = Request { secret: 1, number: 2 };
            for bytes in [&request.to_bytes()[..], &request.answer(7), b"hello", &[]] {
                for host in ["127.0.0.1", "127.0.0.2"] {
                    let _ = stranger.send_to(bytes, (host, port + CLOCK));
                }
            }
            assert!(stranger.recv(&mut [0; 100]).is_err(), "it is none of the stranger's business");
            stop_client.store(true, Ordering::Relaxed);
            asking.thread().unpark();
            let asked = asking.join().unwrap();
            stop_server.store(true, Ordering::Relaxed);
            (asked, telling.join().unwrap())
        });
        assert_eq!(asked.exchanges.len() as u64, asked.received);
        assert!(asked.received > 0 && told.sent >= asked.received, "{} answers", told.sent);
        for exchange in &asked.exchanges {
            let Exchange { asked_ns, heard_ns, answered_ns, returned_ns } = *exchange;
            assert!(asked_ns < returned_ns && heard_ns <= answered_ns, "{exchange:?}");
            assert!(shift.apply(asked_ns) <= heard_ns + 1, "{exchange:?}");
            assert!(answered_ns <= shift.apply(returned_ns) + 1, "{exchange:?}");
        }
    }

    #[test]
    fn a_missing_server_is_no_answer_and_no_error() {
        let client =
            Client::new(&network("127.0.0.1", "127.0.0.2", free_port()), Clock::Monotonic).unwrap();
        let done = client.run(&AtomicBool::new(true));
        assert_eq!((done.received, done.lost), (0, done.sent));
        assert!(done.sent > 0 && done.exchanges.is_empty());
    }

    #[test]
    fn a_port_that_is_taken_is_named() {
        let port = free_port();
        let network = network("127.0.0.1", "127.0.0.2", port);
        let _taken = UdpSocket::bind(network.own_at(CLOCK)).unwrap();
        let error = Server::new(&network, Clock::Monotonic).err().expect("it is taken");
        assert!(error.message.contains(&format!("127.0.0.1:{}/udp", port + CLOCK)), "{error}");
        assert!(error.remedy.contains("another port"));
    }

    #[test]
    fn too_many_exchanges_are_thinned_to_the_fastest() {
        let mut kept = Kept::default();
        let count = 10 * EXCHANGES_MAX as u64 + 77;
        for number in 0..count {
            // Every eighth exchange is fast.
            kept.add(exchange(1000 * number, if number % 8 == 3 { 10 } else { 100 }));
        }
        let exchanges = kept.exchanges;
        assert!((EXCHANGES_MAX / 2..=EXCHANGES_MAX).contains(&exchanges.len()));
        let quick = exchanges.iter().filter(|exchange| exchange.delay_ns() == 8).count();
        assert!(quick >= exchanges.len() - 1, "all but the last group's");
        let gaps = exchanges.windows(2).map(|pair| pair[1].asked_ns - pair[0].asked_ns);
        assert!(gaps.clone().all(|gap_ns| gap_ns <= 32_000 && gap_ns > 0), "{:?}", gaps.max());
    }

    #[test]
    fn few_exchanges_are_all_kept() {
        let mut kept = Kept::default();
        (0..EXCHANGES_MAX as u64).for_each(|number| kept.add(exchange(number, 9)));
        assert!((0..).zip(&kept.exchanges).all(|(number, it)| it.asked_ns == number));
    }
}
