//! The fields of a secret part: each its length, 8 bytes, and its bytes. States of noise come last, three fields each.

/// A state of noise that a row wrote. Secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RowNoise {
    pub slot: String,
    pub salt: [u8; 32],
    pub bytes: Vec<u8>,
}

impl RowNoise {
    /// Reads the columns `slot, salt, bytes`.
    pub fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(RowNoise {
            slot: row.get(0)?,
            salt: row.get(1)?,
            bytes: row.get(2)?,
        })
    }
}

pub(super) fn text_field(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

pub(super) fn put_states(fields: &mut Vec<u8>, states: &[RowNoise]) {
    for RowNoise { slot, salt, bytes } in states {
        put_field(fields, slot.as_bytes());
        put_field(fields, salt);
        put_field(fields, bytes);
    }
}

pub(super) fn take_states(mut rest: &[u8]) -> Option<Vec<RowNoise>> {
    let mut states = Vec::new();
    while !rest.is_empty() {
        let slot = text_field(take_field(&mut rest)?)?;
        let salt = take_field(&mut rest)?.try_into().ok()?;
        states.push(RowNoise {
            slot,
            salt,
            bytes: take_field(&mut rest)?.to_vec(),
        });
    }
    Some(states)
}

pub(super) fn put_field(fields: &mut Vec<u8>, field: &[u8]) {
    fields.extend((field.len() as u64).to_be_bytes());
    fields.extend(field);
}

pub(super) fn take_field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<8>()?;
    let (field, after) =
        after.split_at_checked(usize::try_from(u64::from_be_bytes(*length)).ok()?)?;
    *rest = after;
    Some(field)
}
