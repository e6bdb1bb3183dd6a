//! `hash`: Spark's Murmur3, and digests under their Spark names.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use datafusion::error::Result as DataFusionResult;
use std::sync::Arc;

use super::Call;
use crate::sql::error::Error;
use crate::sql::kernel::{arrays, failed};
use crate::sql::scope::Bound;

pub(super) const NAMES: &[&str] = &["hash"];

/// Spark's seed.
const SEED: u32 = 42;

pub(super) fn apply(call: &Call<'_>) -> Result<Option<Bound>, Error> {
    Ok(Some(match call.name {
        "hash" => {
            call.arity(1, usize::MAX)?;
            let expr = arrays("hash", DataType::Int32, call.exprs(), |columns| {
                let rows = columns.first().map_or(0, |column| column.len());
                let hashes: DataFusionResult<Int32Array> = (0..rows)
                    .map(|row| {
                        let hash = columns
                            .iter()
                            .try_fold(SEED, |seed, column| hashed(column, row, seed))?;
                        Ok(Some(hash.cast_signed()))
                    })
                    .collect();
                Ok(Arc::new(hashes?) as ArrayRef)
            });
            Bound {
                expr,
                ty: DataType::Int32,
            }
        }
        _ => return Ok(None),
    }))
}

/// A null leaves the hash so far as it is.
fn hashed(column: &ArrayRef, row: usize, seed: u32) -> DataFusionResult<u32> {
    if column.is_null(row) {
        return Ok(seed);
    }
    let int = |value: i32| finish(mix(seed, value.cast_unsigned()), 4);
    let long = |value: i64| {
        let value = value.cast_unsigned();
        finish(mix(mix(seed, value as u32), (value >> 32) as u32), 8)
    };
    Ok(match column.data_type() {
        DataType::Boolean => int(i32::from(column.as_boolean().value(row))),
        DataType::Int8 => int(i32::from(column.as_primitive::<Int8Type>().value(row))),
        DataType::Int16 => int(i32::from(column.as_primitive::<Int16Type>().value(row))),
        DataType::Int32 => int(column.as_primitive::<Int32Type>().value(row)),
        DataType::Date32 => int(column.as_primitive::<Date32Type>().value(row)),
        DataType::Int64 => long(column.as_primitive::<Int64Type>().value(row)),
        DataType::Timestamp(..) => long(column.as_primitive::<TimestampMicrosecondType>().value(row)),
        DataType::Float32 => {
            let value = column.as_primitive::<Float32Type>().value(row);
            int((value + 0.0).to_bits().cast_signed())
        }
        DataType::Float64 => {
            let value = column.as_primitive::<Float64Type>().value(row);
            long((value + 0.0).to_bits().cast_signed())
        }
        DataType::Utf8 => bytes(column.as_string::<i32>().value(row).as_bytes(), seed),
        DataType::Binary => bytes(column.as_binary::<i32>().value(row), seed),
        other => return Err(failed("UNSUPPORTED_FEATURE", format!("hash of {other}"))),
    })
}

/// Spark's way with bytes: words of four, then each byte left as a signed word of its own.
fn bytes(bytes: &[u8], seed: u32) -> u32 {
    let mut words = bytes.chunks_exact(4);
    let mut hash = seed;
    for word in &mut words {
        hash = mix(hash, u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    }
    for byte in words.remainder() {
        hash = mix(hash, i32::from(byte.cast_signed()).cast_unsigned());
    }
    finish(hash, bytes.len() as u32)
}

const fn mix(hash: u32, word: u32) -> u32 {
    let word = word
        .wrapping_mul(0xcc9e_2d51)
        .rotate_left(15)
        .wrapping_mul(0x1b87_3593);
    (hash ^ word)
        .rotate_left(13)
        .wrapping_mul(5)
        .wrapping_add(0xe654_6b64)
}

const fn finish(hash: u32, length: u32) -> u32 {
    let mut hash = hash ^ length;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}
