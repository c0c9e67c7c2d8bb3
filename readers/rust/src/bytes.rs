// SPDX-License-Identifier: Apache-2.0

//! Little-endian numbers in a slice whose length was checked.

use std::ops::Range;

use crate::error::Error;

pub(crate) fn u16_at(data: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([data[at], data[at + 1]])
}

pub(crate) fn u32_at(data: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&data[at..at + 4]);
    u32::from_le_bytes(bytes)
}

pub(crate) fn u64_at(data: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&data[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// Reads the parts of a section one behind the other. Ranges are those of the file.
pub(crate) struct Parts<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) at: usize,
    end: usize,
    field: &'static str,
}

impl<'a> Parts<'a> {
    pub(crate) fn new(data: &'a [u8], section: &Range<usize>, field: &'static str) -> Self {
        Parts { data, at: section.start, end: section.end, field }
    }

    /// Takes the next part.
    pub(crate) fn take(&mut self, length: usize) -> Result<Range<usize>, Error> {
        if length > self.end - self.at {
            return Err(Error::format(self.field, self.at, "the section is too short"));
        }
        self.at += length;
        Ok(self.at - length..self.at)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32_at(self.data, self.take(4)?.start))
    }

    /// Takes a column of `count` numbers of `width` bytes.
    pub(crate) fn column(&mut self, width: u8, count: usize) -> Result<Column, Error> {
        let at = self.take(usize::from(width) * count)?.start;
        Ok(Column { at, width, count })
    }

    /// Says that nothing may be left.
    pub(crate) fn finish(self) -> Result<(), Error> {
        if self.at == self.end {
            return Ok(());
        }
        Err(Error::format(self.field, self.at, "the section is too long"))
    }
}

/// A column of numbers of 1, 2 or 4 bytes, or of none, and then all are 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    at: usize,
    width: u8,
    pub(crate) count: usize,
}

impl Column {
    pub(crate) fn get(&self, data: &[u8], i: usize) -> u32 {
        let at = self.at + i * usize::from(self.width);
        match self.width {
            0 => 0,
            1 => u32::from(data[at]),
            2 => u32::from(u16_at(data, at)),
            _ => u32_at(data, at),
        }
    }
}

/// Says whether bit `i` of a set is 1, counted from the lowest bit of the first byte.
pub(crate) fn has_bit(set: &[u8], i: usize) -> bool {
    set[i / 8] >> (i % 8) & 1 != 0
}

/// Makes bit `i` of a set 1.
pub(crate) fn set_bit(set: &mut [u8], i: usize) {
    set[i / 8] |= 1 << (i % 8);
}
