// SPDX-License-Identifier: Apache-2.0

//! CRC-32, which places keys and points, and CRC-32C, which guards the file.

const IEEE: [[u32; 256]; 8] = tables(0xedb8_8320);
const CASTAGNOLI: [[u32; 256]; 8] = tables(0x82f6_3b78);

/// Tables to take eight bytes at a time: number `k` is that of a byte with `k` zero bytes behind it.
const fn tables(polynomial: u32) -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 != 0 { polynomial } else { 0 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[k - 1][byte];
            tables[k][byte] = crc >> 8 ^ tables[0][(crc & 0xff) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

fn extend(t: &[[u32; 256]; 8], crc: u32, data: &[u8]) -> u32 {
    let mut crc = !crc;
    let mut words = data.chunks_exact(8);
    for word in &mut words {
        let x = crc ^ u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        crc = t[7][(x & 0xff) as usize]
            ^ t[6][(x >> 8 & 0xff) as usize]
            ^ t[5][(x >> 16 & 0xff) as usize]
            ^ t[4][(x >> 24) as usize]
            ^ t[3][word[4] as usize]
            ^ t[2][word[5] as usize]
            ^ t[1][word[6] as usize]
            ^ t[0][word[7] as usize];
    }
    for &byte in words.remainder() {
        crc = crc >> 8 ^ t[0][((crc ^ u32::from(byte)) & 0xff) as usize];
    }
    !crc
}

/// Returns the CRC-32 of some data with `data` behind it, where `crc` is that of the data alone; 0 for none.
pub(crate) fn crc32(crc: u32, data: &[u8]) -> u32 {
    extend(&IEEE, crc, data)
}

/// Returns the CRC-32C of data.
pub(crate) fn crc32c(data: &[u8]) -> u32 {
    extend(&CASTAGNOLI, 0, data)
}

/// Returns the 32-bit finaliser of MurmurHash3, which ranks tied points and cuts keys into buckets.
pub(crate) fn mix(x: u32) -> u32 {
    let x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
    let x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(mix(1), 0x514e_28b7);
    }

    #[test]
    fn pieces_make_the_whole() {
        let data: Vec<u8> = (0..100).collect();
        for cut in 0..data.len() {
            assert_eq!(crc32(crc32(0, &data[..cut]), &data[cut..]), crc32(0, &data), "cut at {cut}");
        }
    }
}
