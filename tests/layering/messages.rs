//! The list of all errors and warnings, `doc/messages.md`, is made from the sources, and each keeps the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::advice::{Hints, advice};
use super::causes::causes;
use super::tokens::{self, Texts, has_words};
use super::{program, without_tests};

/// Messages that say nothing to try, and why. It only gets shorter.
const WITHOUT_ADVICE: [(&str, &str); 7] = [
    ("interrupted", "the user has asked for it"),
    ("interrupted while inputs are read", "the user has asked for it"),
    ("… was interrupted", "the user has asked for it"),
    ("the task at … has …", "each of the problems below it says what to try"),
    ("expected …, found …", "what is expected is what to write"),
    (
        "it made no output … (…)",
        "what a run says to try after exec has failed depends on what it finds",
    ),
    ("cannot write the record …", "a record is always JSON, so this is an error of the program"),
];

/// Texts that are parts of other messages, and these messages. It only gets shorter.
const PARTS: [(&str, &str); 8] = [
    ("does not exist", "\"… … in the commit … of the repository …\""),
    ("delete anything beside", "\"cannot … …\" of the storage"),
    ("it is not one commit", "a cause of \"there is no commit …\""),
    ("it was not opened", "a cause of \"the repository … cannot be read\""),
    ("the object … is a …, not a blob", "a cause of \"the repository … cannot be read\""),
    (
        "the tree … has an entry \"…\", which is not a file name",
        "a cause of \"the tree … cannot be read\"",
    ),
    ("… is not a plain file", "a cause of \"the mirror of … cannot be used\""),
    ("… is not as Git writes it", "a cause of \"the repository … cannot be read\""),
];

/// Types whose errors are passed on without their types, and what says what to try for them. It only gets shorter.
const COMPOSED: [(&str, &str); 10] = [
    ("ForeignEntry", "as an error of the system, a cause of \"cannot … …\" of the storage"),
    ("Untrusted", "a cause of \"the repository … cannot be read\""),
    ("NoRepository", "a cause of \"the repository … cannot be read\""),
    ("Damaged", "a cause of \"the repository … cannot be read\""),
    ("AbsentObject", "a cause of \"the repository … cannot be read\""),
    ("Changed", "a cause of \"the computation cannot be taken from the repository\""),
    ("NotCloned", "a cause of \"the tree … cannot be read\""),
    ("ObjectIdError", "makes a record one that cannot be understood"),
    ("RecipeError", "makes a recipe one that is not as recorded"),
    ("NoToken", "a job of another name is not ours, which is not an error"),
];

/// The type of what `ce verify` finds: it says below its list what to do.
const FINDINGS: &str = "Defect";

/// The words that begin with a capital letter wherever they stand, beside variables of the environment.
const PROPER_NAMES: [&str; 2] = ["Git", "Slurm"];

/// Words of libraries and of the compiler, which say nothing to users.
const RAW_WORDS: [&str; 12] = [
    "os error", "errno", "gix", "serde", "clap", "rustix", "panic", "unwrap", "None", "Some(",
    "enum", "UTF8",
];

/// The beginning of the page.
const HEAD: &str = "\
# Messages

All errors and warnings, and what each says to try; `…` stands for names, paths and numbers. What only explains another message is listed under
[causes](#causes). [Troubleshooting](troubleshooting.md) says more about the common ones.
What [`ce doctor`](programs/ce-doctor.md) says to try, and what a run says to try after `exec` has failed, depends on what it finds, and is not listed.

This page is made from the sources: `CE_BLESS=1 cargo test --test layering -- messages`.
";

/// The head of the causes.
const CAUSES: &str = "
## Causes

These only stand after `because:`, or within one of the messages above, whose advice counts. Some are what `ce verify` finds, which says
below its list what to do.
";

/// A message, and what to try: one of these texts; without any, what its cause says to try.
#[derive(Debug, PartialEq)]
struct Message {
    text: String,
    advice: Option<Vec<String>>,
    /// It only ever stands in or beneath another message.
    is_cause: bool,
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
        let advice = advice.map(|it| vec![it.to_owned()]).or_else(says);
        let is_cause = PARTS.iter().any(|(part, _)| *part == text);
        Self { text: text.to_owned(), advice, is_cause }
    }

    /// It as an item of the page.
    fn item(&self) -> String {
        let code = |text: &str| format!("`{}`", text.trim().replace('`', "'").replace('\n', " "));
        let advice = self.advice.iter().flatten();
        let lines = advice.map(|advice| format!("    - try: {}\n", code(advice)));
        lines.fold(format!("- {}\n", code(&self.text)), |item, line| item + &line)
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
    let files = files.iter().map(|(name, text)| (name, tokens::parse(without_tests(text))));
    let files: BTreeMap<_, _> = files.collect();
    let hints: Hints = advice(files.values());
    let causes = causes(files.values(), &hints.owners);
    let is_composed =
        |owner: &str| owner == FINDINGS || COMPOSED.iter().any(|(name, _)| *name == owner);
    let mut messages = BTreeMap::<String, Vec<Message>>::new();
    for (name, tokens) in &files {
        let module = name.split(['/', '.']).next().unwrap_or_default();
        let of_module = messages.entry(module.to_owned()).or_default();
        let errors = tokens::errors(tokens).into_iter().map(|error| Message {
            is_cause: causes.contains(&error.owner) || is_composed(&error.owner),
            text: error.text,
            advice: if error.has_advice {
                Some(Vec::new())
            } else {
                hints.find(&error.owner, &error.variant)
            },
        });
        let literals = Texts::from_tokens(tokens).messages();
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
    let mut page = HEAD.to_owned();
    for (is_cause, level) in [(false, "##"), (true, "###")] {
        if is_cause {
            page.push_str(CAUSES);
        }
        for (module, messages) in messages {
            let mut messages = messages.iter().filter(|it| it.is_cause == is_cause).peekable();
            if messages.peek().is_some() {
                writeln!(page, "\n{level} {module}\n").unwrap();
            }
            messages.for_each(|message| page.push_str(&message.item()));
        }
    }
    page
}

#[test]
fn messages_are_listed_and_keep_the_rules() {
    let messages = messages(&program());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("doc/messages.md");
    if std::env::var_os("CE_BLESS").is_some() {
        fs::write(&path, page(&messages)).unwrap();
    }
    let listed = fs::read_to_string(&path).unwrap_or_default();
    assert!(listed == page(&messages), "doc/messages.md is out of date: see its beginning");
    let all = || messages.values().flatten();
    let wrong = all().flat_map(|it| it.faults().into_iter().map(move |fault| (&it.text, fault)));
    assert_eq!(wrong.collect::<Vec<_>>(), []);
    let without = all().filter(|message| message.advice.is_none() && !message.is_cause);
    let without: BTreeSet<&str> = without.map(|message| message.text.as_str()).collect();
    let known: BTreeSet<&str> = WITHOUT_ADVICE.iter().map(|(text, _)| *text).collect();
    assert_eq!(without, known, "each message says what to try, but for those with a reason");
    let is_there = |text: &&str| all().any(|message| message.text == **text);
    let gone: Vec<&str> = PARTS.iter().map(|(text, _)| *text).filter(|it| !is_there(it)).collect();
    assert_eq!(gone, [""; 0], "no message has these parts");
    let declared: BTreeSet<String> = program()
        .values()
        .flat_map(|text| tokens::errors(&tokens::parse(text)))
        .map(|error| error.owner)
        .collect();
    let gone = COMPOSED.iter().map(|(name, _)| *name).filter(|it| !declared.contains(*it));
    assert_eq!(gone.collect::<Vec<_>>(), [""; 0], "no error has these types");
}

#[test]
fn a_message_that_breaks_a_rule_is_found() {
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
    let shown = messages["a"].iter().map(|Message { text, advice, .. }| {
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
