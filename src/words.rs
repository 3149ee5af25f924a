//! Numbers of things, in words.

/// Writes how many there are of something: `1 call`, `2 calls`.
pub(crate) fn counted(count: usize, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one_and_all_others_are_many() {
        let counts = [0, 1, 2].map(|count| counted(count, "call"));
        assert_eq!(counts, ["0 calls", "1 call", "2 calls"]);
    }
}
