//! Our side of each type: the code that publishes message `n`, and the code that takes one and
//! checks all of it.

use std::time::Duration;

use myelin::{Node, Payload, Published};
use myelin_ros::cdr::{self, DecodeError};
use myelin_ros::sensor_msgs::{Image, Imu, PointCloud2};
use myelin_ros::std_msgs::String as RosString;
use myelin_ros::{Error, Message, Publisher, RosNode, Subscriber};

use crate::pattern::{Path, Pattern, Pose, number_of};
use crate::peer::WATCHDOG;

/// A type that both sides know.
#[derive(Clone, Copy)]
pub struct Kind {
    /// As the peers call it.
    pub name: &'static str,
    /// The topic as DDS programs call it.
    pub dds_topic: &'static str,
    /// How many are sent: at most the depth, and few large ones.
    pub count: u32,
    pub publisher: fn(&Node, Quality) -> Box<dyn Out>,
    pub subscriber: fn(&Node, Quality) -> Box<dyn In>,
}

impl Kind {
    /// Whether it is a ROS 2 message.
    pub fn is_ros(&self) -> bool {
        self.dds_topic.starts_with("rt/")
    }
}

/// Makes a topic of a type that is not ROS 2's.
macro_rules! plain {
    ($name:literal, $topic:literal, $payload:ty, $declare:ident, $type:literal) => {
        Kind {
            name: $name,
            dds_topic: $topic,
            count: 10,
            publisher: |node, quality| {
                let topic = quality.of(node.topic::<$payload>($topic).$declare($type));
                Box::new(topic.publisher().unwrap())
            },
            subscriber: |node, quality| {
                let topic = quality.of(node.topic::<$payload>($topic).$declare($type));
                Box::new(topic.subscriber().unwrap())
            },
        }
    };
}

pub const STRING: Kind = ros::<RosString<'static>>("String", "rt/chatter", 10);
pub const IMAGE: Kind = ros::<Image<'static>>("Image", "rt/camera/image", 4);
pub const POSE: Kind = plain!("Pose", "pose", Pose, dds_type, "robot::Pose");
pub const ALL: [Kind; 7] = [
    STRING,
    IMAGE,
    ros::<PointCloud2<'static>>("PointCloud2", "rt/lidar/points", 4),
    ros::<Imu<'static>>("Imu", "rt/imu", 10),
    POSE,
    plain!("Path", "path", [u8], dds_cdr, "robot::Path"),
    plain!("Poses", "poses", [Pose], dds_type, "robot::Poses"),
];

/// The settings of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    /// ROS 2's default: reliable, the 10 newest.
    Reliable,
    BestEffort,
    /// Reliable, and late joiners get the 10 newest.
    History,
}

impl Quality {
    /// The words for the peers.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Quality::Reliable => &[],
            Quality::BestEffort => &["best-effort"],
            Quality::History => &["transient-local"],
        }
    }

    fn of<T: Payload + ?Sized>(self, topic: myelin::Topic<T>) -> myelin::Topic<T> {
        let topic = topic.depth(10);
        match self {
            Quality::Reliable => topic.reliable(WATCHDOG),
            Quality::BestEffort => topic.best_effort(),
            Quality::History => topic.reliable(WATCHDOG).transient_local(10),
        }
    }
}

/// A publisher of ours.
pub trait Out {
    fn publish(&self, n: u32);
    fn wait_for_match(&self, subscribers: usize);
}

/// A subscriber of ours.
pub trait In {
    /// The number of the next message, if all of it is right; `None` if there is none in time. An
    /// error if it is not a message of this type.
    fn receive(&mut self, limit: Duration) -> Result<Option<u32>, Error>;
}

/// A ROS 2 message of [`Pattern`].
trait Checked: Message + Sized + 'static {
    /// Its ROS 2 name.
    const TOPIC: &'static str;
    fn publish(publisher: &Publisher<Self>, pattern: &Pattern) -> Result<Published, Error>;
    /// Its number, and whether all of it is right.
    fn check(message: Self::View<'_>) -> (u32, bool);
}

impl Checked for RosString<'static> {
    const TOPIC: &'static str = "chatter";

    fn publish(publisher: &Publisher<Self>, pattern: &Pattern) -> Result<Published, Error> {
        publisher.publish(&pattern.string())
    }

    fn check(message: RosString<'_>) -> (u32, bool) {
        let n = number_of(message.data);
        (n, message == Pattern::new(n).string())
    }
}

impl Checked for Image<'static> {
    const TOPIC: &'static str = "/camera/image";

    fn publish(publisher: &Publisher<Self>, pattern: &Pattern) -> Result<Published, Error> {
        let image = pattern.image();
        let mut pixels = publisher.loan(&Image { data: &[], ..image.clone() })?;
        pixels.copy_from_slice(image.data);
        pixels.publish()
    }

    fn check(message: Image<'_>) -> (u32, bool) {
        let n = message.header.stamp.nanosec;
        (n, message == Pattern::new(n).image())
    }
}

impl Checked for PointCloud2<'static> {
    const TOPIC: &'static str = "lidar/points";

    fn publish(publisher: &Publisher<Self>, pattern: &Pattern) -> Result<Published, Error> {
        let cloud = pattern.cloud();
        let mut points = publisher.loan(&PointCloud2 { data: &[], ..cloud.clone() })?;
        points.copy_from_slice(cloud.data);
        points.publish()
    }

    fn check(message: PointCloud2<'_>) -> (u32, bool) {
        let n = message.header.stamp.nanosec;
        (n, message == Pattern::new(n).cloud())
    }
}

impl Checked for Imu<'static> {
    const TOPIC: &'static str = "imu";

    fn publish(publisher: &Publisher<Self>, pattern: &Pattern) -> Result<Published, Error> {
        publisher.publish(&pattern.imu())
    }

    fn check(message: Imu<'_>) -> (u32, bool) {
        let n = message.header.stamp.nanosec;
        (n, message == Pattern::new(n).imu())
    }
}

const fn ros<M: Checked>(name: &'static str, dds_topic: &'static str, count: u32) -> Kind {
    Kind {
        name,
        dds_topic,
        count,
        publisher: |node, quality| {
            let topic = node.ros_topic::<M>(M::TOPIC).unwrap().with(|topic| quality.of(topic));
            Box::new(topic.publisher().unwrap())
        },
        subscriber: |node, quality| {
            let topic = node.ros_topic::<M>(M::TOPIC).unwrap().with(|topic| quality.of(topic));
            Box::new(topic.subscriber().unwrap())
        },
    }
}

impl<M: Checked> Out for Publisher<M> {
    fn publish(&self, n: u32) {
        M::publish(self, &Pattern::new(n)).unwrap();
    }

    fn wait_for_match(&self, subscribers: usize) {
        assert!((**self).wait_for_match(subscribers, WATCHDOG), "no subscriber");
    }
}

impl<M: Checked> In for Subscriber<M> {
    fn receive(&mut self, limit: Duration) -> Result<Option<u32>, Error> {
        let Some(sample) = Subscriber::receive(self, limit)? else { return Ok(None) };
        Ok(Some(right(M::check(sample.decode()?))))
    }
}

/// Our ends for a payload that is not a ROS 2 message: the published value, and the check of a
/// sample.
macro_rules! ends {
    ($payload:ty, $publish:expr, $check:expr) => {
        impl Out for myelin::Publisher<$payload> {
            fn publish(&self, n: u32) {
                let publish: fn(&Self, u32) -> Result<Published, myelin::Error> = $publish;
                publish(self, n).unwrap();
            }

            fn wait_for_match(&self, subscribers: usize) {
                assert!(self.wait_for_match(subscribers, WATCHDOG), "no subscriber");
            }
        }

        impl In for myelin::Subscriber<$payload> {
            fn receive(&mut self, limit: Duration) -> Result<Option<u32>, Error> {
                let check: fn(&$payload) -> Result<(u32, bool), DecodeError> = $check;
                let Some(sample) = myelin::Subscriber::receive(self, limit)? else {
                    return Ok(None);
                };
                Ok(Some(right(check(&sample).unwrap())))
            }
        }
    };
}

ends!(Pose, |publisher, n| publisher.publish_copy(&Pose::new(n)), |pose| Ok((
    pose.number,
    *pose == Pose::new(pose.number)
)));
ends!([Pose], |publisher, n| publisher.publish_copy(&Pose::several(n)), |poses| {
    let n = poses[0].number;
    Ok((n, poses == Pose::several(n)))
});
ends!(
    [u8],
    |publisher, n| {
        let pattern = Pattern::new(n);
        let path = pattern.path();
        let mut loan = publisher.loan(cdr::encoded_bytes(&path).unwrap())?;
        cdr::encode(&path, &mut loan).unwrap();
        loan.publish()
    },
    |bytes| {
        let path: Path = cdr::decode(bytes)?;
        let n = number_of(path.name);
        Ok((n, path == Pattern::new(n).path()))
    }
);

fn right((n, is_right): (u32, bool)) -> u32 {
    assert!(is_right, "message {n} is not as it was sent");
    n
}
