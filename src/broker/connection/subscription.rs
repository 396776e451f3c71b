use std::time::Duration;

use futures::StreamExt;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::time::timeout;

use crate::broker::connection::endpoint::Endpoint;
use crate::broker::connection::error::BrokerError;
use crate::broker::connection::live::SIGN_OF_LIFE;

/// How long nothing may be heard until Redis is asked for a sign of life. Also keeps a network from
/// forgetting the connection.
const QUIET: Duration = Duration::from_secs(5);

/// A connection that hears what is published on one channel. When it breaks it is over: whoever needs
/// it subscribes again, and looks for what it may have missed.
pub(crate) struct Subscription {
    sink: PubSubSink,
    messages: PubSubStream,
}

impl Subscription {
    pub(crate) async fn open(endpoint: &Endpoint, channel: &str) -> Result<Self, BrokerError> {
        let (mut sink, messages) = endpoint.listen().await?.split();
        let limit = endpoint.command_timeout();
        match timeout(limit, sink.subscribe(channel)).await {
            Ok(Ok(())) => Ok(Self { sink, messages }),
            Ok(Err(error)) => Err(BrokerError::classify(error, limit)),
            Err(_) => Err(BrokerError::Timeout(limit)),
        }
    }

    /// The next message; `None` when the connection has ended.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            match timeout(QUIET, self.messages.next()).await {
                Ok(message) => {
                    let message = message?;
                    let text = String::from_utf8_lossy(message.get_payload_bytes());
                    return Some(text.into_owned());
                }
                Err(_) => {
                    let sign = timeout(SIGN_OF_LIFE, self.sink.ping::<redis::Value>()).await;
                    sign.ok()?.ok()?;
                }
            }
        }
    }

    /// The next message, unless none comes for so long; `None` when the connection has ended.
    pub(crate) async fn next_within(&mut self, limit: Duration) -> Option<Option<String>> {
        match timeout(limit, self.next()).await {
            Ok(message) => message.map(Some),
            Err(_) => Some(None),
        }
    }
}
