//! A callback's thread: it takes the samples that no publisher of this process delivers.

use std::sync::Arc;

use super::{CallbackState, Handler};
use crate::data_plane::subscription::{Asleep, SubscriptionState};
use crate::dispatch::dispatcher::Dispatcher;
use crate::dispatch::handlers::Entered;
use crate::user_code::Inside;
use crate::waiting::wait::Wait;

/// A callback's thread.
pub(super) struct CallbackThread {
    dispatcher: Arc<Dispatcher>,
    shared: Arc<CallbackState>,
    subscription: Arc<SubscriptionState>,
    wait: Wait,
    has_joined: bool,
}

/// The place of the handler while its thread runs.
pub(super) enum At {
    /// The thread has it.
    Hand(Handler),
    /// It lies in its entry; the thread sleeps.
    Entry(Asleep),
}

impl CallbackThread {
    pub(super) fn new(
        dispatcher: &Arc<Dispatcher>,
        subscription: &Arc<SubscriptionState>,
        shared: &Arc<CallbackState>,
        wait: Wait,
    ) -> CallbackThread {
        let (dispatcher, subscription, shared) =
            (dispatcher.clone(), subscription.clone(), shared.clone());
        CallbackThread { dispatcher, shared, subscription, wait, has_joined: false }
    }

    /// Whether it has an entry in the dispatcher.
    pub(super) fn has_joined(&self) -> bool {
        self.has_joined
    }

    /// Leaves the handler to the publishers of this process, if there are any and they allow it.
    pub(super) fn begin(&mut self, handler: Handler) -> At {
        let dispatcher = self.dispatcher.clone();
        match dispatcher.entries().try_enter() {
            None => At::Hand(handler),
            Some(entered) => self.park(handler, entered),
        }
    }

    pub(super) fn attend(mut self, mut at: At) {
        let dispatcher = self.dispatcher.clone();
        while !self.shared.is_stopping() {
            at = match at {
                At::Entry(asleep) => {
                    self.subscription.sleeper.sleep(asleep);
                    At::Hand(self.unpark())
                }
                At::Hand(mut handler) => match handler.deliver() {
                    Ok(()) if handler.has_local_publisher(&dispatcher) => {
                        self.park(handler, dispatcher.entries().enter())
                    }
                    delivered => {
                        let waited = delivered.and_then(|()| handler.wait(self.wait));
                        waited.unwrap_or_else(|error| self.shared.note(error));
                        At::Hand(handler)
                    }
                },
            };
        }
        let handler = match at {
            At::Hand(handler) => handler,
            At::Entry(_) => self.unpark(),
        };
        if self.has_joined {
            dispatcher.leave(self.subscription.id());
        }
        let _inside = Inside::new();
        drop(handler); // outside the dispatcher: the function's own `Drop` is user code
    }

    /// Leaves the handler to the publishers, unless there is work.
    fn park(&mut self, mut handler: Handler, mut entered: Entered<'_, Handler>) -> At {
        let id = self.subscription.id();
        if !self.has_joined {
            self.dispatcher.join(&mut entered, id);
            self.has_joined = true;
        }
        if !handler.has_local_publisher(&self.dispatcher) {
            return At::Hand(handler);
        }
        // ORDER: the fence in `fall_asleep` pairs with those of publishers and of `interrupt`: a
        // thread that does not see this one asleep is seen by this one.
        let fall_asleep =
            |handler: &mut Handler| handler.fall_asleep().filter(|_| !self.shared.is_stopping());
        match entered.park(id, handler, fall_asleep) {
            Ok(asleep) => At::Entry(asleep),
            Err(handler) => {
                self.subscription.sleeper.wake_up();
                At::Hand(handler)
            }
        }
    }

    fn unpark(&self) -> Handler {
        let handler = self.dispatcher.entries().enter().unpark(self.subscription.id());
        self.subscription.sleeper.wake_up();
        handler
    }
}
