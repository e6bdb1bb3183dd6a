use super::*;
use crate::protocol::Record;
use crate::testing::{records, slots};
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_slot_is_read_as_it_was_written(seq in any::<u64>(), mut written in records(1..5)) {
        written.iter_mut().for_each(|record| record.seq = seq);
        prop_assert_eq!(decode_slot(seq, &encode_slot(seq, &written)).expect("own bytes"), written);
    }

    #[test]
    fn a_flipped_bit_is_found(seq in any::<u64>(), written in records(1..4), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut bytes = encode_slot(seq, &written);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(decode_slot(seq, &bytes).is_err(), "byte {}", at);
    }

    #[test]
    fn a_slot_that_is_cut_anywhere_is_found(seq in any::<u64>(), written in records(1..4), at in any::<prop::sample::Index>()) {
        let bytes = encode_slot(seq, &written);
        prop_assert!(decode_slot(seq, &bytes[..at.index(bytes.len())]).is_err());
    }

    #[test]
    fn a_slot_under_anothers_key_is_found(written in records(1..3), seq in 0..100_u64, other in 0..100_u64) {
        prop_assume!(seq != other);
        prop_assert!(decode_slot(other, &encode_slot(seq, &written)).is_err());
    }

    #[test]
    fn random_bytes_are_never_a_slot(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(decode_slot(7, &bytes).is_err());
    }

    /// A torn tail is a prefix of the log: it says what was, never anything else.
    #[test]
    fn every_prefix_of_a_log_replays(all in slots(20), cut in any::<prop::sample::Index>()) {
        let bytes: Vec<(u64, Vec<u8>)> = all.iter().map(|slot| (slot[0].seq, encode_slot(slot[0].seq, slot))).collect();
        let cut = cut.index(bytes.len() + 1);
        let read: Vec<Record> = bytes[..cut]
            .iter()
            .flat_map(|(seq, bytes)| decode_slot(*seq, bytes).expect("own bytes"))
            .collect();
        prop_assert_eq!(&read, &all[..cut].concat());
        let log = crate::protocol::Log::replay(&read);
        prop_assert_eq!(log.tail(), cut.checked_sub(1).map(|last| last as u64));
        let facts: Vec<_> = read.into_iter().map(crate::testing::appended).collect();
        prop_assert_eq!(crate::protocol::invariants::check_log(&facts), Ok(()));
    }
}

#[test]
fn a_newer_format_is_refused_by_its_number() {
    assert_eq!(decode_slot(1, &[9, 1, 0, 0]), Err(CodecError::Newer(9)));
}
