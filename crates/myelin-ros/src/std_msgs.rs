//! `std_msgs` and `builtin_interfaces`: the header of most messages, and a line of text.

use crate::cdr::Text;
use crate::cdr_struct;
use crate::message::Message;

cdr_struct! {
    /// `builtin_interfaces/msg/Time`: since 1970 on the publisher's clock, or since the start of a
    /// simulation.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct Time {
        /// Seconds.
        pub sec: i32,
        /// Nanoseconds of the second, 0 to 999,999,999.
        pub nanosec: u32,
    }
}

impl Message for Time {
    const TYPE: &'static str = "builtin_interfaces/msg/Time";
    type View<'a> = Time;
}

impl Time {
    /// The time now, by the system's clock.
    pub fn now() -> Time {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let since = since.unwrap_or_default();
        let sec = i32::try_from(since.as_secs()).unwrap_or(i32::MAX);
        Time { sec, nanosec: since.subsec_nanos() }
    }
}

cdr_struct! {
    /// `std_msgs/msg/Header`: when something was measured, and in what frame of coordinates.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Header<'a> {
        /// When it was measured.
        pub stamp: Time,
        /// The frame that its coordinates refer to.
        pub frame_id: Text<'a>,
    }
}

impl Message for Header<'_> {
    const TYPE: &'static str = "std_msgs/msg/Header";
    type View<'a> = Header<'a>;
}

cdr_struct! {
    /// `std_msgs/msg/String`.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct String<'a> {
        /// The text.
        pub data: Text<'a>,
    }
}

impl Message for String<'_> {
    const TYPE: &'static str = "std_msgs/msg/String";
    type View<'a> = String<'a>;
}
