use std::time::Duration;

use futures::StreamExt;

use super::Endpoint;
use crate::broker::BrokerError;

/// A connection that hears what is published on one channel. When it breaks it is over: whoever needs
/// it subscribes again, and looks for what it may have missed.
pub(crate) struct Subscription {
    messages: redis::aio::PubSub,
}

impl Subscription {
    pub(crate) async fn open(endpoint: &Endpoint, channel: &str) -> Result<Self, BrokerError> {
        let limit = endpoint.connect_timeout();
        let open = async {
            let mut messages = endpoint.pubsub().await?;
            messages
                .subscribe(channel)
                .await
                .map_err(|error| BrokerError::classify(error, limit))?;
            Ok(Self { messages })
        };
        tokio::time::timeout(limit, open)
            .await
            .unwrap_or(Err(BrokerError::Timeout(limit)))
    }

    /// The next message; `None` when the connection has ended.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let message = self.messages.on_message().next().await?;
        Some(String::from_utf8_lossy(message.get_payload_bytes()).into_owned())
    }

    /// The next message, unless none comes for so long; `None` when the connection has ended.
    pub(crate) async fn next_within(&mut self, limit: Duration) -> Option<Option<String>> {
        match tokio::time::timeout(limit, self.next()).await {
            Ok(message) => message.map(Some),
            Err(_) => Some(None),
        }
    }
}
