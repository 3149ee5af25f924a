//! Texts with a line for each point of a sweep: recipes and tables. There may be a million points.

use std::io::{self, BufWriter, Write};

use ce_model::digest::{Digest, Hasher, PIECE};

/// A text that is too long to be held in memory, and its digest.
///
/// It is written anew whenever it is needed.
pub struct LongText<'a> {
    write: Box<WriteLines<'a>>,
    digest: Digest,
}

/// Writes a text: the same bytes each time.
type WriteLines<'a> = dyn Fn(&mut dyn Write) -> io::Result<()> + Send + Sync + 'a;

/// Hashes what is written.
struct HashedText<'a>(&'a mut Hasher);

impl Write for HashedText<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.0.update(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> LongText<'a> {
    /// The text that a function writes: the same each time, and without an error of its own.
    pub fn of(write: impl Fn(&mut dyn Write) -> io::Result<()> + Send + Sync + 'a) -> Self {
        let mut hasher = Hasher::default();
        let mut text = BufWriter::with_capacity(PIECE, HashedText(&mut hasher));
        let written = write(&mut text).and_then(|()| text.flush());
        debug_assert!(written.is_ok(), "hashing a text cannot fail");
        drop(text);
        let digest = hasher.finish();
        Self { write: Box::new(write), digest }
    }

    /// A text that is in memory after all.
    pub fn of_bytes(bytes: impl AsRef<[u8]> + Send + Sync + 'a) -> Self {
        let digest = Digest::of(bytes.as_ref());
        Self { write: Box::new(move |out| out.write_all(bytes.as_ref())), digest }
    }

    /// Writes it.
    ///
    /// # Errors
    ///
    /// Fails if `out` does.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        (self.write)(out)
    }

    /// Its digest.
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_the_same_however_it_is_made() {
        let text = b"a\nb\n";
        let in_pieces = LongText::of(|out| text.chunks(1).try_for_each(|it| out.write_all(it)));
        for it in [in_pieces, LongText::of_bytes(text)] {
            let mut written = Vec::new();
            it.write(&mut written).unwrap();
            assert_eq!((it.digest(), &*written), (&Digest::of(text), &text[..]));
        }
    }
}
