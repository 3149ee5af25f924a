//! The list of all errors and warnings, `doc/messages.md`, is made from the sources, and each keeps the rules.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::advice::{Hints, advice};
use super::sources;
use super::tokens::{self, Texts, has_words};

/// The number of messages without advice. It only falls: lower it when some get advice.
const WITHOUT_ADVICE: usize = 182;

/// What begins with a capital letter wherever it stands, beside variables of the environment.
const PROPER_NAMES: [&str; 2] = ["Git", "Slurm"];

/// Words of libraries and of the compiler, which say nothing to users.
const RAW_WORDS: [&str; 12] = [
    "os error", "errno", "gix", "serde", "clap", "rustix", "panic", "unwrap", "None", "Some(",
    "enum", "UTF8",
];

/// The beginning of the page.
const HEAD: &str = "\
# Messages

All errors and warnings, and what each says to try; `…` stands for names, paths and numbers. An error may be the cause (`because:`) of
another one, whose advice counts then. [Troubleshooting](troubleshooting.md) says more about the common ones.
What [`ce doctor`](programs/ce-doctor.md) says to try, and what a run says to try after `exec` has failed, depends on what it finds, and is not listed.

This page is made from the sources: `CE_BLESS=1 cargo test --test layering -- messages`.
";

/// A message, and what to try: one of these texts; without any, what its cause says to try.
#[derive(Debug, PartialEq)]
struct Message {
    text: String,
    advice: Option<Vec<String>>,
}

impl Message {
    /// A message of a literal that may end with what to try.
    fn of_literal(text: &str) -> Self {
        let (text, advice) = match text.split_once("try: ") {
            Some((text, advice)) => (text.trim_end_matches(['\n', ' ', ';']), Some(advice)),
            None => (text, None),
        };
        // `write NAME=TEXT` is both.
        let says = || format!("; {text}").contains("; write ").then(Vec::new);
        Self { text: text.to_owned(), advice: advice.map(|it| vec![it.to_owned()]).or_else(says) }
    }

    /// The rules that it breaks.
    fn faults(&self) -> Vec<&'static str> {
        let texts = || std::iter::once(&self.text).chain(self.advice.iter().flatten());
        let first = self.text.split([' ', ':', '\'']).next().unwrap_or_default();
        let is_name = PROPER_NAMES.contains(&first) || first.contains('_');
        let is_capital = first.starts_with(char::is_uppercase) && !is_name;
        // `.` and `..` are names.
        let ends =
            |text: &String| text.strip_suffix('.').is_some_and(|it| !it.ends_with([' ', '.']));
        let raw = |text: &String| RAW_WORDS.iter().any(|word| text.contains(word));
        let faults = [
            (is_capital, "begins with a capital letter"),
            (texts().any(ends), "ends with a full stop"),
            (texts().any(raw), "has a word of a library"),
        ];
        faults.into_iter().filter(|(is, _)| *is).map(|(_, fault)| fault).collect()
    }
}

/// The messages of all files, by module.
fn messages(files: &BTreeMap<String, String>) -> BTreeMap<String, Vec<Message>> {
    let is_tested = |(name, _): &(&String, &String)| !name.ends_with("tests.rs");
    let files: BTreeMap<_, _> = files
        .iter()
        .filter(is_tested)
        .map(|(name, text)| {
            (name, tokens::of(text.split("#[cfg(test)]\nmod tests").next().unwrap()))
        })
        .collect();
    let hints: Hints = advice(files.values());
    let mut messages = BTreeMap::<String, Vec<Message>>::new();
    for (name, tokens) in &files {
        let module = name.split(['/', '.']).next().unwrap_or_default();
        let of_module = messages.entry(module.to_owned()).or_default();
        let errors = tokens::errors(tokens).into_iter().map(|error| Message {
            text: error.text,
            advice: if error.has_advice {
                Some(Vec::new())
            } else {
                hints.of(&error.owner, &error.variant)
            },
        });
        let literals = Texts::of(tokens).messages();
        let literals = literals.into_iter().map(|text| Message::of_literal(&text));
        for message in errors.chain(literals) {
            if has_words(&message.text) && !of_module.contains(&message) {
                of_module.push(message);
            }
        }
    }
    messages.retain(|_, messages| !messages.is_empty());
    messages
}

/// The page that lists them.
fn page(messages: &BTreeMap<String, Vec<Message>>) -> String {
    let code = |text: &str| format!("`{}`", text.trim().replace('`', "'").replace('\n', " "));
    let mut page = HEAD.to_owned();
    for (module, messages) in messages {
        writeln!(page, "\n## {module}\n").unwrap();
        for Message { text, advice } in messages {
            writeln!(page, "- {}", code(text)).unwrap();
            for advice in advice.iter().flatten() {
                writeln!(page, "    - try: {}", code(advice)).unwrap();
            }
        }
    }
    page
}

#[test]
fn messages_are_listed_and_keep_the_rules() {
    let messages = messages(&sources("src"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("doc/messages.md");
    if std::env::var_os("CE_BLESS").is_some() {
        fs::write(&path, page(&messages)).unwrap();
    }
    let listed = fs::read_to_string(&path).unwrap_or_default();
    assert!(listed == page(&messages), "doc/messages.md is out of date: see its beginning");
    let all = || messages.values().flatten();
    let wrong = all().flat_map(|it| it.faults().into_iter().map(move |fault| (&it.text, fault)));
    assert_eq!(wrong.collect::<Vec<_>>(), []);
    let without = all().filter(|message| message.advice.is_none()).count();
    assert_eq!(without, WITHOUT_ADVICE, "messages without advice: may only become fewer");
}

#[test]
fn a_wrong_message_would_be_seen() {
    let source = r#"
        #[derive(Debug)]
        #[error("one")]
        pub struct One;
        enum Other {
            #[error("Bad file {path:?} in {dir}.")]
            File { path: PathBuf, dir: PathBuf },
            #[error("cannot {0}: os error {1}")]
            #[non_exhaustive]
            Errno(&'static str, u8),
            #[error("{{x}} stays")]
            Stays,
            #[error("{0}")]
            Inner(One),
        }
        impl Wrap {
            fn hint(&self) -> Option<String> {
                Some(match self {
                    Self::Other(Other::Stays) if self.has("a few words") => format!("give {}", it()),
                    Self::Other(Other::Errno(..)) => match doing {
                        "look at" => return None,
                        _ => again("to read"),
                    },
                    _ => return None,
                })
            }
        }
        fn again(doing: &str) -> &str {
            "try again"
        }
        fn f() -> Result<(), String> {
            say(&format_args!("warning: {it} is odd"));
            Err(format!("no {it} here; try: another"))
        }"#;
    let messages = messages(&BTreeMap::from([("a/b.rs".to_owned(), source.to_owned())]));
    let shown = messages["a"].iter().map(|Message { text, advice }| {
        let advice = advice.as_ref().map(|advice| advice.join(", "));
        format!("{text} -> {}", advice.as_deref().unwrap_or("nothing"))
    });
    let expected = [
        "one -> nothing",
        "Bad file \"…\" in …. -> nothing",
        "cannot …: os error … -> to read, try again",
        "{x} stays -> give …",
        "… is odd -> nothing",
        "no … here -> another",
    ];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    let faults: Vec<_> = messages["a"].iter().map(|message| message.faults().len()).collect();
    assert_eq!(faults, [0, 2, 1, 0, 0, 0]);
}
