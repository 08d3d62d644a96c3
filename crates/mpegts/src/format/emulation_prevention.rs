/// Copies a NAL unit without the bytes that keep start codes out of it
/// (`emulation_prevention_three_byte`, ITU-T H.264 section 7.3.1).
pub fn without_emulation_prevention(nal: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(nal.len());
    let mut zeros = 0;
    for &byte in nal {
        if zeros >= 2 && byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        plain.push(byte);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emulation_prevention_is_taken_out() {
        let plain = without_emulation_prevention;
        assert_eq!(plain(&[1, 0, 0, 3, 1, 0, 0, 0, 3, 3]), [1, 0, 0, 1, 0, 0, 0, 3]);
        assert_eq!(plain(&[1, 0, 0, 3, 1, 3, 0, 0, 3]), [1, 0, 0, 1, 3, 0, 0]);
    }
}
