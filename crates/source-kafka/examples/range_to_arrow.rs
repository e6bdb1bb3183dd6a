//! A range of Kafka offsets as Arrow: embedded broker, three messages, the middle two offsets' worth of them.
#![expect(clippy::print_stdout, reason = "an example's output")]

use baton_core::{
    Offset, OffsetRange, OpenContext, OptionMap, PartitionRange, SourceContext, SourceFormat, SourceName,
    TopicPartition,
};
use baton_source_kafka::{EmbeddedBroker, Producer, format};
use futures::TryStreamExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let broker = EmbeddedBroker::start(&[("fruit", 1)])?;
    let producer = Producer::connect(broker.bootstrap_servers())?;
    for value in ["apple", "pear", "plum"] {
        producer.send("fruit", None, Some(value.as_bytes())).await?;
    }
    producer.flush().await?;

    let options = OptionMap::from_iter([
        ("kafka.bootstrap.servers", broker.bootstrap_servers()),
        ("subscribe", "fruit"),
    ]);
    let source = format().source(
        &SourceContext::new(SourceName::new("fruit")?, "example".to_owned()),
        options,
    )?;
    source
        .open(&OpenContext::new(std::time::Duration::from_secs(10), 1))
        .await?;
    let range = OffsetRange::new(Offset(1), Offset(3))?;
    let ranges = [PartitionRange {
        partition: TopicPartition::new("fruit", 0),
        range,
    }];
    for mut stream in source.read(&ranges, 1)? {
        while let Some(batch) = stream.try_next().await? {
            println!("{batch:#?}");
        }
    }
    Ok(())
}
