//! Foxglove's WebSocket protocol, `foxglove.sdk.v1` and the older `foxglove.websocket.v1`: the same
//! messages, of which the older one lacks those of playback.
//!
//! | from | message | frame |
//! |---|---|---|
//! | server | `serverInfo`, `advertise`, `unadvertise`, `status`, `connectionGraphUpdate` | JSON |
//! | server | message, time, state of playback | opcode `u8`, fields, little-endian |
//! | client | `subscribe`, `unsubscribe`, `advertise`, `subscribeConnectionGraph`, … | JSON |
//! | client | message to publish, request of playback | opcode `u8`, fields, little-endian |

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::channel::Channel;
use super::queue::Frame;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Sdk,
    Websocket,
    /// That of the page.
    Page,
}

/// A client's request in JSON.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Request {
    Subscribe {
        subscriptions: Vec<Subscription>,
    },
    Unsubscribe {
        subscription_ids: Vec<u32>,
    },
    Advertise {
        channels: Vec<ClientChannel>,
    },
    Unadvertise {
        channel_ids: Vec<u32>,
    },
    SubscribeConnectionGraph,
    UnsubscribeConnectionGraph,
    #[serde(other)]
    Other,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(super) struct Subscription {
    pub(super) id: u32,
    pub(super) channel_id: u64,
}

/// A topic that a client publishes.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientChannel {
    pub(super) id: u32,
    pub(super) topic: String,
    pub(super) encoding: String,
    pub(super) schema_name: String,
}

/// A client's request in binary form.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Binary<'a> {
    /// A message to publish: its channel, and its data.
    Message(&'a [u8]),
    Playback(PlaybackRequest),
}

/// What a client wants of the playback of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlaybackRequest {
    pub(super) play: bool,
    pub(super) speed: f32,
    pub(super) seek_ns: Option<u64>,
    /// Its name in the answer.
    pub(super) id: String,
}

/// The playback of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlaybackState {
    pub(super) status: PlaybackStatus,
    /// In ns since 1970.
    pub(super) now_ns: u64,
    pub(super) speed: f32,
    pub(super) did_seek: bool,
    /// That of the request that it answers; empty if it answers none.
    pub(super) request: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub(super) enum PlaybackStatus {
    Playing = 0,
    Paused = 1,
    Ended = 3,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Level {
    Warning = 1,
    Error = 2,
}

impl Protocol {
    /// The first one of those that a client offers.
    pub(super) fn choose<'a>(offered: impl Iterator<Item = &'a str>) -> Option<Protocol> {
        let known = offered.filter_map(|it| {
            [Protocol::Sdk, Protocol::Websocket, Protocol::Page]
                .into_iter()
                .find(|p| p.name() == it)
        });
        // A client that offers both has no preference.
        known.min_by_key(|it| *it as u8)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Protocol::Sdk => "foxglove.sdk.v1",
            Protocol::Websocket => "foxglove.websocket.v1",
            Protocol::Page => "myelin.view.v1",
        }
    }
}

impl PlaybackRequest {
    /// Without the opcode.
    fn parse(fields: &[u8]) -> Option<PlaybackRequest> {
        let (play, fields) = fields.split_first()?;
        let (speed, fields) = fields.split_first_chunk()?;
        let (seeks, fields) = fields.split_first()?;
        let (seek, fields) = fields.split_first_chunk()?;
        let (length, fields) = fields.split_first_chunk()?;
        let id = fields.get(..u32::from_le_bytes(*length) as usize)?;
        Some(PlaybackRequest {
            play: match play {
                0 => true,
                1 => false,
                _ => return None,
            },
            speed: f32::from_le_bytes(*speed),
            seek_ns: (*seeks != 0).then(|| u64::from_le_bytes(*seek)),
            id: std::str::from_utf8(id).ok()?.to_owned(),
        })
    }
}

/// A client's request in binary form.
///
/// # Errors
/// One sentence for the client.
pub(super) fn parse_binary(frame: &[u8]) -> Result<Binary<'_>, String> {
    match frame.split_first() {
        Some((1, message)) => Ok(Binary::Message(message)),
        Some((3, fields)) => {
            let request = PlaybackRequest::parse(fields).map(Binary::Playback);
            request.ok_or_else(|| "the request of playback is broken".into())
        }
        Some((opcode, _)) => Err(format!("opcode {opcode} is not supported")),
        None => Err("the message is empty".into()),
    }
}

/// The first message.
pub(super) fn server_info(
    name: &str,
    session: &str,
    range: Option<(u64, u64)>,
    can_publish: bool,
) -> Frame {
    let mut info = json!({
        "op": "serverInfo",
        "name": name,
        "capabilities": ["connectionGraph"],
        "supportedEncodings": [],
        "metadata": {},
        "sessionId": session,
    });
    if let Some((begin, end)) = range {
        let time = |ns: u64| json!({"sec": ns / 1_000_000_000, "nsec": ns % 1_000_000_000});
        info["capabilities"] = json!(["connectionGraph", "time", "playbackControl"]);
        (info["dataStartTime"], info["dataEndTime"]) = (time(begin), time(end));
    }
    if can_publish {
        info["capabilities"] = json!(["connectionGraph", "clientPublish"]);
        info["supportedEncodings"] = json!(["json"]);
    }
    text(&info)
}

/// The channels that its clients can read; `None` if there are none.
pub(super) fn advertise<'a>(channels: impl Iterator<Item = &'a Channel>) -> Option<Frame> {
    let channel = |it: &Channel| {
        let wire = it.wire.as_ref().ok()?;
        Some(json!({
            "id": it.id,
            "topic": it.name,
            "encoding": wire.encoding,
            "schemaName": wire.schema_name,
            "schemaEncoding": wire.schema_encoding,
            "schema": wire.schema,
        }))
    };
    let channels: Vec<_> = channels.filter_map(channel).collect();
    (!channels.is_empty()).then(|| text(&json!({"op": "advertise", "channels": channels})))
}

pub(super) fn unadvertise(channels: &[u64]) -> Frame {
    text(&json!({"op": "unadvertise", "channelIds": channels}))
}

/// A later one of the same id takes the place of an earlier one.
pub(super) fn status(level: Level, message: &str, id: Option<&str>) -> Frame {
    let mut status = json!({"op": "status", "level": level as u8, "message": message});
    if let Some(id) = id {
        status["id"] = id.into();
    }
    text(&status)
}

/// In front of a message's data.
pub(super) fn message_head(subscription: u32, log_ns: u64) -> [u8; 13] {
    let mut head = [1; 13];
    head[1..5].copy_from_slice(&subscription.to_le_bytes());
    head[5..].copy_from_slice(&log_ns.to_le_bytes());
    head
}

pub(super) fn time(now_ns: u64) -> Frame {
    let mut frame = vec![2];
    frame.extend_from_slice(&now_ns.to_le_bytes());
    Frame::Binary(frame)
}

pub(super) fn playback_state(of: &PlaybackState) -> Frame {
    let mut frame = vec![5, of.status as u8];
    frame.extend_from_slice(&of.now_ns.to_le_bytes());
    frame.extend_from_slice(&of.speed.to_le_bytes());
    frame.push(u8::from(of.did_seek));
    frame.extend_from_slice(&(of.request.len() as u32).to_le_bytes());
    frame.extend_from_slice(of.request.as_bytes());
    Frame::Binary(frame)
}

pub(super) fn text(json: &serde_json::Value) -> Frame {
    Frame::Text(json.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes are those of the snapshots of the crate `foxglove`.
    #[test]
    fn binary_messages_are_those_of_the_sdk() {
        let id = b"some-id";
        let mut request = vec![3, 1];
        request.extend_from_slice(&1.5_f32.to_le_bytes());
        request.push(1);
        request.extend_from_slice(&123_456_789_u64.to_le_bytes());
        request.extend_from_slice(&7_u32.to_le_bytes());
        request.extend_from_slice(id);
        let parsed = parse_binary(&request).unwrap();
        let expected = PlaybackRequest {
            play: false,
            speed: 1.5,
            seek_ns: Some(123_456_789),
            id: "some-id".to_owned(),
        };
        assert_eq!(parsed, Binary::Playback(expected));
        for end in 0..request.len() {
            assert!(parse_binary(&request[..end]).is_err(), "{end}");
        }
        let state = PlaybackState {
            status: PlaybackStatus::Playing,
            now_ns: 12_345,
            speed: 1.0,
            did_seek: true,
            request: "i-am-a-request".to_owned(),
        };
        let Frame::Binary(state) = playback_state(&state) else { unreachable!() };
        assert_eq!(state[..15], [5, 0, 0x39, 0x30, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f, 1]);
        assert_eq!(state[15..], [&[14, 0, 0, 0], b"i-am-a-request".as_slice()].concat());
        assert_eq!(message_head(30, 258), [1, 30, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn requests_are_read_and_unknown_ones_are_known_as_such() {
        let read = |text: &str| serde_json::from_str::<Request>(text);
        let subscriptions = vec![Subscription { id: 1, channel_id: 7 }];
        let text = r#"{"op": "subscribe", "subscriptions": [{"id": 1, "channelId": 7}]}"#;
        assert_eq!(read(text).unwrap(), Request::Subscribe { subscriptions });
        let text = r#"{"op": "unsubscribe", "subscriptionIds": [1, 2]}"#;
        assert_eq!(read(text).unwrap(), Request::Unsubscribe { subscription_ids: vec![1, 2] });
        let text = r#"{"op": "getParameters", "parameterNames": [], "id": "x"}"#;
        assert_eq!(read(text).unwrap(), Request::Other);
        assert!(read(r#"{"op": "subscribe"}"#).is_err());
    }

    #[test]
    fn the_protocol_with_playback_is_taken_if_both_are_offered() {
        let choose = |offered: &[&str]| Protocol::choose(offered.iter().copied());
        assert_eq!(choose(&["foxglove.websocket.v1", "foxglove.sdk.v1"]), Some(Protocol::Sdk));
        assert_eq!(choose(&["x", "foxglove.websocket.v1"]), Some(Protocol::Websocket));
        assert_eq!(choose(&["x"]), None);
    }
}
