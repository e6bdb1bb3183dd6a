use super::*;
use proptest::collection::btree_map;
use proptest::prelude::*;

fn offsets() -> impl Strategy<Value = PartitionOffsets> {
    btree_map(("[a-z.]{1,6}", 0..8_i32), 0..1_000_000_i64, 0..12).prop_map(|map| {
        map.into_iter()
            .map(|((topic, partition), offset)| (TopicPartition::new(topic, partition), Offset(offset)))
            .collect()
    })
}

proptest! {
    #[test]
    fn json_round_trips(position in offsets()) {
        prop_assert_eq!(PartitionOffsets::from_json(&position.to_json()).expect("own JSON"), position);
    }

    #[test]
    fn ranges_cover_exactly_what_lies_between(from in offsets(), steps in prop::collection::vec(0..50_i64, 12)) {
        let until: PartitionOffsets = from
            .iter()
            .zip(steps.iter().chain(std::iter::repeat(&0)))
            .map(|((partition, at), step)| (partition, Offset(at.0 + step)))
            .collect();
        let ranges = from.ranges_until(&until).expect("ends do not lie before starts");
        prop_assert!(ranges.iter().all(|r| !r.range.is_empty()));
        let mut reached = from.clone();
        for r in &ranges {
            prop_assert_eq!(from.of(&r.partition), Some(r.range.from()));
            reached.set(r.partition.clone(), r.range.until());
        }
        prop_assert_eq!(reached, until);
    }

    #[test]
    fn an_end_before_its_start_is_refused(from in offsets(), back in 1..100_i64) {
        prop_assume!(!from.is_empty());
        let (partition, at) = from.iter().next().expect("not empty");
        let mut until = from.clone();
        until.set(partition, Offset(at.0 - back));
        prop_assert!(from.ranges_until(&until).is_err());
    }

    #[test]
    fn lag_is_never_negative(at in offsets(), latest in offsets()) {
        prop_assert!(at.lag_behind(&latest).iter().all(|(_, lag)| lag.0 >= 0));
    }
}

#[track_caller]
fn refused(json: &str, part: &str) {
    let error = PartitionOffsets::from_json(json)
        .expect_err("must be refused")
        .to_string();
    assert!(error.contains(part), "`{error}` does not say `{part}`");
}

#[test]
fn bad_offsets_json_names_what_is_wrong() {
    refused("earliest", "JSON");
    refused(r#"{"t":{"0":-3}}"#, "t-0 is negative");
    refused(r#"{"t":{"x":1}}"#, "`x` of topic `t`");
    refused(r#"{"t":{"-1":1}}"#, "not a partition number");
    refused(r#"{"t":1}"#, "invalid type");
}

#[test]
fn a_partition_without_start_or_end_is_refused() {
    let one = PartitionOffsets::from_json(r#"{"t":{"0":1}}"#).expect("valid");
    let two = PartitionOffsets::from_json(r#"{"t":{"0":1,"1":2}}"#).expect("valid");
    assert!(one.ranges_until(&two).is_err());
    assert!(two.ranges_until(&one).is_err());
}

#[test]
fn removing_the_last_partition_removes_the_topic() {
    let mut one = PartitionOffsets::from_json(r#"{"t":{"0":1}}"#).expect("valid");
    assert_eq!(one.remove(&TopicPartition::new("t", 0)), Some(Offset(1)));
    assert_eq!(one.to_json(), "{}");
}

#[test]
fn offsets_are_read_inside_a_tagged_message_too() {
    #[derive(serde::Deserialize)]
    #[serde(tag = "type")]
    enum Message {
        Ends { at: PartitionOffsets },
    }
    let Message::Ends { at } = serde_json::from_str(r#"{"type":"Ends","at":{"t":{"0":1}}}"#).expect("valid");
    assert_eq!(at.get("t", 0), Some(Offset(1)));
}
