//! {{ mark }}: Myelin as it was measured.

{% if is_timed %}
use std::time::Duration;

{% endif %}
use myelin::{{ "{" }}{{ names | join(", ") }}{{ "}" }};

/// A process's part in the domain{{ ", which keeps idle CPUs awake" if is_awake }}.
pub fn node(name: &str) -> Result<Node, Error> {
    Node::builder(name){{ ".latency_guard(true)" if is_awake }}.open()
}
{% for topic in topics %}

{% if topic.is_called %}
/// A function that is called with each sample, of {{ topic.points }}.
pub fn is_called(
    node: &Node,
    topic: &str,
    mut call: impl FnMut(&[u8]) + Send + 'static,
) -> Result<Callback, Error> {
    node.topic::<[u8]>(topic).subscriber()?.on_sample(move |sample| call(sample))
}
{% else %}
/// Of {{ topic.points }}.
pub fn publisher_{{ topic.name }}(node: &Node, topic: &str) -> Result<Publisher<[u8]>, Error> {
    {{ topic.topic }}.publisher()
}

/// Of {{ topic.points }}.
pub fn subscriber_{{ topic.name }}(node: &Node, topic: &str) -> Result<Subscriber<[u8]>, Error> {
    let topic = {{ topic.topic }};
    let mut subscriber = topic.subscriber()?;
    subscriber.set_wait({{ topic.wait }});
    Ok(subscriber)
}
{% endif %}
{% endfor %}
