//! A callback's thread: it takes what no publisher of this process delivers.

use std::sync::Arc;

use super::{Body, Shared};
use crate::places::Entered;
use crate::stage::Stage;
use crate::subscription::{Asleep, SubscriptionShared};
use crate::wait::Wait;

/// A callback's thread.
pub(super) struct Attendant {
    stage: Arc<Stage>,
    shared: Arc<Shared>,
    subscription: Arc<SubscriptionShared>,
    wait: Wait,
    has_joined: bool,
}

/// Where the body is while its thread runs.
pub(super) enum At {
    /// With the thread.
    Hand(Body),
    /// In its place; the thread sleeps.
    Place(Asleep),
}

impl Attendant {
    pub(super) fn new(
        stage: &Arc<Stage>,
        subscription: &Arc<SubscriptionShared>,
        shared: &Arc<Shared>,
        wait: Wait,
    ) -> Attendant {
        let (stage, subscription, shared) = (stage.clone(), subscription.clone(), shared.clone());
        Attendant { stage, shared, subscription, wait, has_joined: false }
    }

    /// Whether its place on the stage has been made.
    pub(super) fn has_joined(&self) -> bool {
        self.has_joined
    }

    /// Leaves the body to the publishers of this process, if there are any and they allow it.
    pub(super) fn begin(&mut self, body: Body) -> At {
        let stage = self.stage.clone();
        match stage.places().try_enter() {
            None => At::Hand(body),
            Some(entered) => self.put_down(body, entered),
        }
    }

    pub(super) fn attend(mut self, mut at: At) {
        let stage = self.stage.clone();
        while !self.shared.is_stopping() {
            at = match at {
                At::Place(asleep) => {
                    self.subscription.sleep(asleep);
                    At::Hand(self.pick_up())
                }
                At::Hand(mut body) => match body.deliver() {
                    Ok(()) if body.meets_locals(&stage) => {
                        self.put_down(body, stage.places().enter())
                    }
                    delivered => {
                        let waited = delivered.and_then(|()| body.wait(self.wait));
                        waited.unwrap_or_else(|error| self.shared.note(error));
                        At::Hand(body)
                    }
                },
            };
        }
        let body = match at {
            At::Hand(body) => body,
            At::Place(_) => self.pick_up(),
        };
        if self.has_joined {
            stage.leave(self.subscription.id());
        }
        drop(body); // outside the stage: the function's own `Drop` may do what it likes
    }

    /// Leaves the body to the publishers, unless there is something to do.
    fn put_down(&mut self, mut body: Body, mut entered: Entered<'_, Body>) -> At {
        let id = self.subscription.id();
        if !self.has_joined {
            self.stage.join(&mut entered, id);
            self.has_joined = true;
        }
        if !body.meets_locals(&self.stage) {
            return At::Hand(body);
        }
        // ORDER: the fence in `fall_asleep` pairs with those of publishers and of `interrupt`, so
        // that whoever does not see us asleep is seen by us.
        let fall_asleep =
            |body: &mut Body| body.fall_asleep().filter(|_| !self.shared.is_stopping());
        match entered.put_down(id, body, fall_asleep) {
            Ok(asleep) => At::Place(asleep),
            Err(body) => {
                self.subscription.wake_up();
                At::Hand(body)
            }
        }
    }

    fn pick_up(&self) -> Body {
        let body = self.stage.places().enter().pick_up(self.subscription.id());
        self.subscription.wake_up();
        body
    }
}
