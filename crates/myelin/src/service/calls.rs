//! A client's calls: those without a reply, and the results of the others. Does no input or output.

use crate::EndpointId;

use super::CALLS_MAX;

/// `R` is a reply.
pub(super) struct Calls<R> {
    /// The number of the next call.
    next: u64,
    open: Vec<Call<R>>,
    /// The servers, each with the first call that it can have received.
    servers: Vec<(EndpointId, u64)>,
    late: u64,
}

struct Call<R> {
    number: u64,
    state: State<R>,
}

enum State<R> {
    Waiting,
    /// The client does not wait for the reply any more. The call still takes room in the rings.
    Abandoned,
    Over(Result<R, Failure>),
}

/// Why there is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No server is left that could reply.
    ServerGone,
    /// The server has dropped the request.
    NoReply,
}

impl<R> Calls<R> {
    pub(super) fn new() -> Self {
        Calls { next: 1, open: Vec::with_capacity(CALLS_MAX), servers: Vec::new(), late: 0 }
    }

    /// The number of a new call; `None` if there are too many.
    pub(super) fn begin(&mut self) -> Option<u64> {
        if self.open.len() == CALLS_MAX {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.open.push(Call { number, state: State::Waiting });
        Some(number)
    }

    /// The request could not be sent.
    pub(super) fn withdraw(&mut self, number: u64) {
        self.open.retain(|call| call.number != number);
    }

    /// A server has replied or refused.
    pub(super) fn reply(&mut self, number: u64, reply: Result<R, Failure>) {
        let Some(at) = self.open.iter().position(|call| call.number == number) else {
            self.late += 1; // from a second server, or for an abandoned call
            return;
        };
        match self.open[at].state {
            State::Waiting => self.open[at].state = State::Over(reply),
            State::Abandoned => {
                self.open.swap_remove(at);
                self.late += 1;
            }
            State::Over(_) => self.late += 1,
        }
    }

    /// The result of a call, once.
    pub(super) fn take(&mut self, number: u64) -> Option<Result<R, Failure>> {
        let at = self.open.iter().position(|call| call.number == number)?;
        match self.open[at].state {
            State::Over(_) => match self.open.swap_remove(at).state {
                State::Over(reply) => Some(reply),
                State::Waiting | State::Abandoned => unreachable!("the call was over"),
            },
            State::Waiting | State::Abandoned => None,
        }
    }

    /// The client stops waiting for a call.
    pub(super) fn abandon(&mut self, number: u64) {
        if let Some(Ok(_)) = self.take(number) {
            self.late += 1;
        } else if let Some(call) = self.open.iter_mut().find(|call| call.number == number) {
            call.state = State::Abandoned;
        }
    }

    /// A server has come: it gets all calls from now on.
    pub(super) fn server_came(&mut self, server: EndpointId) {
        self.servers.push((server, self.next));
    }

    /// A server has gone. All its replies have been passed to `reply`.
    pub(super) fn server_gone(&mut self, server: EndpointId) {
        self.servers.retain(|(known, _)| *known != server);
        let servers = &self.servers;
        self.open.retain_mut(|call| {
            let has_server = servers.iter().any(|(_, first)| *first <= call.number);
            match call.state {
                State::Waiting if !has_server => {
                    call.state = State::Over(Err(Failure::ServerGone));
                    true
                }
                State::Abandoned => has_server,
                _ => true,
            }
        });
    }

    /// How many servers there are.
    pub(super) fn servers(&self) -> usize {
        self.servers.len()
    }

    /// How many replies came for calls that nobody waited for.
    pub(super) fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_server() -> Calls<&'static str> {
        let mut calls = Calls::new();
        calls.server_came(SERVER);
        calls
    }

    #[test]
    fn each_call_gets_its_reply_once() {
        let mut calls = with_server();
        let (first, second) = (calls.begin().unwrap(), calls.begin().unwrap());
        calls.reply(second, Ok("second"));
        assert_eq!(calls.take(first), None);
        assert_eq!(calls.take(second), Some(Ok("second")));
        assert_eq!(calls.take(second), None, "once");
        calls.reply(second, Ok("again"));
        calls.reply(first, Err(Failure::NoReply));
        calls.reply(first, Ok("of another server"));
        assert_eq!(calls.take(first), Some(Err(Failure::NoReply)));
        assert_eq!(calls.late(), 2);
    }

    #[test]
    fn a_reply_to_a_call_that_was_given_up_is_dropped_and_counted() {
        let mut calls = with_server();
        let (early, late) = (calls.begin().unwrap(), calls.begin().unwrap());
        calls.reply(early, Ok("early"));
        calls.abandon(early);
        calls.abandon(late);
        assert_eq!(calls.late(), 1);
        calls.reply(late, Ok("late"));
        assert_eq!((calls.late(), calls.open.len()), (2, 0));
    }

    #[test]
    fn a_call_that_was_given_up_takes_room_until_it_is_replied_to() {
        let mut calls = with_server();
        for _ in 0..CALLS_MAX {
            let number = calls.begin().unwrap();
            calls.abandon(number);
        }
        assert_eq!(calls.begin(), None);
        calls.reply(1, Ok("late"));
        assert!(calls.begin().is_some());
        calls.server_gone(SERVER);
        assert_eq!(calls.open.len(), 1, "nobody will reply to those");
    }

    #[test]
    fn a_call_fails_when_no_server_is_left_that_can_have_got_it() {
        let mut calls = with_server();
        let of_one = calls.begin().unwrap();
        calls.server_came(OTHER);
        let of_both = calls.begin().unwrap();
        calls.server_gone(SERVER);
        assert_eq!(calls.take(of_one), Some(Err(Failure::ServerGone)));
        assert_eq!(calls.take(of_both), None);
        calls.server_gone(OTHER);
        assert_eq!(calls.take(of_both), Some(Err(Failure::ServerGone)));
        assert_eq!(calls.servers(), 0);
    }

    const SERVER: EndpointId = 1 << 24;
    const OTHER: EndpointId = 2 << 24;
}
