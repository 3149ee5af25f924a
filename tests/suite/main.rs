//! The tests of the programs as users see them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::format_push_string,
    reason = "a test may panic"
)]

mod documents;
