//! Parameter files: points over the inputs of a task as objects of JSON, in an array or one after the other.
//!
//! A list multiplies the points of its object. A missing key of an object stands for the default of the input. A comma may
//! stand behind each object, and need not: files of benmet have it or not.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::points::SweepPoints;
use super::product::{FactorFault, MAX_POINTS};
use super::sheet::{
    Fields, Interner, JsonField, MAX_PROBLEMS, MAX_SHEET, SheetFault, checked, json_text,
    named_fields, trimmed,
};
use crate::exit::Explain;
use crate::suggest::UnknownName;

/// The objects of a parameter file.
#[derive(Debug, Default)]
pub struct Parameters {
    /// The keys, in the order in which they appear.
    names: Vec<String>,
    /// The texts that each object has in each column, as far as it has the column.
    objects: Vec<Vec<Vec<String>>>,
}

/// A problem of a parameter file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterProblem {
    /// The number of the object, counted from one; `None` for the file as a whole.
    pub object: Option<usize>,
    /// The key, if it is one's.
    pub key: Option<String>,
    pub fault: ParameterFault,
}

/// The kind of a problem of a parameter file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum ParameterFault {
    /// A value cannot be a text of a point.
    #[error(transparent)]
    #[hint(_0.hint_for_parameters())]
    Value(#[from] SheetFault),
    /// The file is not JSON.
    #[error("line {line}: {reason}")]
    #[hint("write objects such as {{\"size\": [1, 2]}}, all in one array or one after the other")]
    Json {
        /// The line, counted from one.
        line: usize,
        /// The fault there, in words.
        reason: String,
    },
    /// A key is not an input.
    #[error("the task has no such input")]
    #[hint(Some(_0.suggestion("inputs")))]
    NoInput(UnknownName),
    /// A list has no values.
    #[error("the list is empty")]
    #[hint("write a value, or leave the key out: then the input has its default")]
    EmptyList,
    /// A list has a list or an object.
    #[error("the list has a list or an object in it")]
    #[hint("write texts and numbers only; several objects are a union")]
    Nested,
    /// An object lacks a key.
    #[error("the key is missing, and {0}")]
    #[hint("write the key into this object, too")]
    Missing(NoDefaultText),
    /// Two points are the same.
    #[error("a point occurs twice")]
    #[hint("remove one of them; replicates repeat points, in a sweep")]
    Twice,
    /// A point is the same as a point of an earlier object.
    #[error("a point is the same as one of object {0}")]
    #[hint("remove one of them; replicates repeat points, in a sweep")]
    SamePoint(usize),
    /// There are too many points.
    #[error("there are more than {MAX_POINTS} points")]
    #[hint(FactorFault::TooMany.hint())]
    TooMany,
}

impl SheetFault {
    /// What to try if this is the fault of a value in a parameter file.
    fn hint_for_parameters(&self) -> Option<String> {
        let hint = match self {
            Self::Container => {
                "write a text, a number, or a list of them; an object has no objects in it"
            }
            Self::Null => {
                "write a text, as in \"\", or leave the key out: then the input has its default"
            }
            Self::SameName(_) => {
                "remove one of them; a list has several values, as in {\"size\": [1, 2]}"
            }
            Self::NoColumns => "write a key and a value, as in {\"size\": 1}",
            fault => return fault.hint(),
        };
        Some(hint.to_owned())
    }
}

/// The reason why the default of an input cannot be a text of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDefaultText {
    /// The input has no default.
    #[error("the input has no default")]
    Absent,
    /// It is something else than a line of text.
    #[error("the default of the input is not one line of text")]
    NotLine,
}

impl fmt::Display for ParameterProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(object) = self.object {
            write!(f, "object {object}: ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "key {key:?}: ")?;
        }
        self.fault.fmt(f)
    }
}

/// ParameterProblems, as long as they are not too many.
#[derive(Default)]
struct ParameterProblems(Vec<ParameterProblem>);

impl ParameterProblems {
    fn add(&mut self, object: usize, key: Option<&str>, fault: impl Into<ParameterFault>) {
        let (object, key, fault) = match self.0.len() {
            ..MAX_PROBLEMS => (Some(object), key.map(str::to_owned), fault.into()),
            MAX_PROBLEMS => (None, None, SheetFault::More.into()),
            _ => return,
        };
        self.0.push(ParameterProblem { object, key, fault });
    }

    const fn are_too_many(&self) -> bool {
        self.0.len() > MAX_PROBLEMS
    }

    fn or<T>(self, value: T) -> Result<T, Vec<ParameterProblem>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }
}

/// The values of the next object, or why there is none.
struct ObjectReader<'a> {
    contents: &'a [u8],
    at: usize,
    /// Whether a bracket is open; `None` if there was none.
    is_open: Option<bool>,
    /// Whether a comma may follow.
    takes_comma: bool,
}

impl<'a> ObjectReader<'a> {
    fn new(contents: &'a [u8]) -> Self {
        let mut reader = Self { contents, at: 0, is_open: None, takes_comma: false };
        if reader.next_byte() == Some(b'[') {
            reader.at += 1;
            reader.is_open = Some(true);
        }
        reader
    }

    /// The next byte that is not white space.
    fn next_byte(&mut self) -> Option<u8> {
        while self.contents.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.contents.get(self.at).copied()
    }

    /// The fields of the next object; `None` at the end.
    fn next(&mut self) -> Option<Result<Vec<JsonField<'a>>, ParameterFault>> {
        loop {
            match self.next_byte() {
                None if self.is_open == Some(true) => {
                    return Some(Err(self.fault(0, "the array does not end")));
                }
                None => return None,
                Some(_) if self.is_open == Some(false) => {
                    return Some(Err(self.fault(0, "something follows the array")));
                }
                Some(b']') if self.is_open == Some(true) => {
                    self.at += 1;
                    self.is_open = Some(false);
                }
                Some(b',') if self.takes_comma => {
                    self.at += 1;
                    self.takes_comma = false;
                }
                Some(b'{') => return Some(self.object()),
                Some(_) => {
                    return Some(Err(self.fault(0, "expected an object, as in {\"size\": 1}")));
                }
            }
        }
    }

    fn object(&mut self) -> Result<Vec<JsonField<'a>>, ParameterFault> {
        let rest = &self.contents[self.at..];
        let mut objects = serde_json::Deserializer::from_slice(rest).into_iter::<Fields<'a>>();
        match objects.next() {
            Some(Ok(fields)) => {
                self.at += objects.byte_offset();
                self.takes_comma = true;
                Ok(named_fields(fields)?)
            }
            Some(Err(error)) => {
                let reason = error.to_string();
                let end = reason.rfind(" at line ").unwrap_or(reason.len());
                Err(self.fault(error.line().saturating_sub(1), &reason[..end]))
            }
            None => Err(self.fault(0, "expected an object, as in {\"size\": 1}")),
        }
    }

    /// A fault this many lines below the current one.
    fn fault(&self, below: usize, reason: &str) -> ParameterFault {
        let before = self.contents[..self.at].iter().filter(|byte| **byte == b'\n').count();
        ParameterFault::Json { line: 1 + before + below, reason: reason.to_owned() }
    }
}

impl Parameters {
    /// Reads the objects of a file. The keys are names of `inputs`.
    ///
    /// Numbers are texts as they are spelled, and so are `true` and `false`.
    ///
    /// # Errors
    ///
    /// Fails with all problems up to [`MAX_PROBLEMS`], in order. Nothing is read behind invalid JSON.
    pub fn read(contents: &[u8], inputs: &[String]) -> Result<Self, Vec<ParameterProblem>> {
        if contents.len() > MAX_SHEET {
            let fault = SheetFault::TooLarge.into();
            return Err(vec![ParameterProblem { object: None, key: None, fault }]);
        }
        let (mut parameters, mut problems) = (Self::default(), ParameterProblems::default());
        let mut reader = ObjectReader::new(trimmed(contents));
        for number in 1.. {
            match reader.next() {
                None => break,
                Some(Ok(fields)) => parameters.add(number, &fields, inputs, &mut problems),
                Some(Err(fault)) => {
                    problems.add(number, None, fault);
                    break;
                }
            }
            if problems.are_too_many() {
                break;
            }
        }
        if parameters.names.is_empty() && !parameters.objects.is_empty() && problems.0.is_empty() {
            problems.add(1, None, SheetFault::NoColumns);
        }
        problems.or(parameters)
    }

    fn add(
        &mut self,
        number: usize,
        fields: &[JsonField<'_>],
        inputs: &[String],
        problems: &mut ParameterProblems,
    ) {
        let mut texts = vec![Vec::new(); self.names.len()];
        let mut seen = HashSet::new();
        for (key, value) in fields {
            if !seen.insert(key) {
                problems.add(number, None, SheetFault::SameName(key.to_string()));
                continue;
            }
            if !inputs.iter().any(|name| *name == **key) {
                let unknown = ParameterFault::NoInput(UnknownName::new(&**key, inputs));
                problems.add(number, Some(key), unknown);
                continue;
            }
            let column = self.names.iter().position(|name| *name == **key);
            let column = column.unwrap_or_else(|| {
                self.names.push(key.to_string());
                texts.push(Vec::new());
                self.names.len() - 1
            });
            match texts_of(value) {
                Ok(found) => texts[column] = found,
                Err(fault) => problems.add(number, Some(key), fault),
            }
        }
        self.objects.push(texts);
    }

    /// Whether there are no objects.
    pub const fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The keys that some object lacks.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let missing = self.names.iter().enumerate().filter(|(at, _)| {
            self.objects.iter().any(|texts| texts.get(*at).is_none_or(Vec::is_empty))
        });
        missing.map(|(_, name)| &**name)
    }

    /// Returns the points of all objects, with the texts of `defaults` for the keys that an object lacks. The last key of
    /// an object varies fastest, in the order in which they appear in the file.
    ///
    /// # Errors
    ///
    /// Fails with all problems up to [`MAX_PROBLEMS`]: a missing key without a default, a point that occurs twice, or too many points.
    pub fn points(
        self,
        defaults: &HashMap<String, Result<String, NoDefaultText>>,
    ) -> Result<SweepPoints, Vec<ParameterProblem>> {
        let mut problems = ParameterProblems::default();
        let mut columns: Vec<Interner> = self.names.iter().map(|_| Interner::default()).collect();
        let (mut objects, mut count) = (Vec::with_capacity(self.objects.len()), 0_usize);
        for (number, mut texts) in (1..).zip(self.objects) {
            texts.resize(self.names.len(), Vec::new());
            for (name, texts) in self.names.iter().zip(&mut texts).filter(|(_, it)| it.is_empty()) {
                match defaults.get(name).unwrap_or(&Err(NoDefaultText::Absent)) {
                    Ok(text) => texts.push(text.clone()),
                    Err(fault) => problems.add(number, Some(name), ParameterFault::Missing(*fault)),
                }
            }
            let size = texts.iter().map(|it| it.len().max(1)).fold(1, usize::saturating_mul);
            count = count.saturating_add(size);
            if count > MAX_POINTS {
                problems.add(number, None, ParameterFault::TooMany);
            }
            if count > MAX_POINTS || problems.are_too_many() {
                break;
            }
            let levels = columns.iter_mut().zip(&texts);
            let levels = levels.map(|(column, texts)| {
                texts.iter().map(|text| column.number(text)).collect::<Vec<u32>>()
            });
            objects.push(levels.collect());
        }
        problems.or(())?;
        let rows = multiplied(&objects, count * self.names.len())?;
        let levels: Vec<Vec<Arc<str>>> = columns.into_iter().map(Interner::into_levels).collect();
        Ok(SweepPoints { names: self.names, levels, rows, ..SweepPoints::default() })
    }
}

/// The rows of all objects: the product of the levels of each.
fn multiplied(
    objects: &[Vec<Vec<u32>>],
    capacity: usize,
) -> Result<Vec<u32>, Vec<ParameterProblem>> {
    let (mut problems, mut rows) = (ParameterProblems::default(), Vec::with_capacity(capacity));
    for levels in objects {
        let size: usize = levels.iter().map(Vec::len).product();
        for number in 0..size {
            let mut stride = size;
            for levels in levels {
                stride /= levels.len();
                rows.push(levels[number / stride % levels.len()]);
            }
        }
    }
    let mut first = HashMap::with_capacity(capacity);
    let mut all = rows.chunks_exact(objects.first().map_or(1, Vec::len).max(1));
    for (number, levels) in (1..).zip(objects) {
        for row in all.by_ref().take(levels.iter().map(Vec::len).product()) {
            let before = *first.entry(row).or_insert((number, row.as_ptr()));
            if before.1 == row.as_ptr() {
                continue;
            }
            let fault = if before.0 == number {
                ParameterFault::Twice
            } else {
                ParameterFault::SamePoint(before.0)
            };
            problems.add(number, None, fault);
            break;
        }
        if problems.are_too_many() {
            break;
        }
    }
    problems.or(()).map(|()| rows)
}

/// The texts of a value: one, or the texts of a list.
fn texts_of(value: &RawValue) -> Result<Vec<String>, ParameterFault> {
    if !value.get().starts_with('[') {
        return Ok(vec![text(value)?]);
    }
    let values: Vec<&RawValue> = serde_json::from_str(value.get())
        .map_err(|error| ParameterFault::Value(SheetFault::Json(error.to_string())))?;
    if values.is_empty() {
        return Err(ParameterFault::EmptyList);
    }
    let texts = values.into_iter().map(|value| match text(value) {
        Err(SheetFault::Container) => Err(ParameterFault::Nested),
        text => Ok(text?),
    });
    texts.collect()
}

/// The text of a value that is not a list.
fn text(value: &RawValue) -> Result<String, SheetFault> {
    let text = json_text(value)?;
    Ok(checked(text.as_bytes())?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{point_title, united};

    fn inputs() -> Vec<String> {
        ["first", "size", "mode"].map(str::to_owned).to_vec()
    }

    fn read(file: &str) -> Result<SweepPoints, Vec<ParameterProblem>> {
        let parameters = Parameters::read(file.as_bytes(), &inputs())?;
        let defaults = HashMap::from([
            ("size".to_owned(), Ok("7".to_owned())),
            ("mode".to_owned(), Err(NoDefaultText::NotLine)),
        ]);
        parameters.points(&defaults)
    }

    fn rows(file: &str) -> Vec<String> {
        let points = read(file).unwrap_or_else(|problems| panic!("{file}: {problems:?}"));
        let row = |values: Vec<&str>| values.join(" ");
        points.iter().map(|it| row(it.values().map(|(_, text)| &**text).collect())).collect()
    }

    fn problems(file: &str) -> Vec<String> {
        let problems = read(file).unwrap_err();
        assert!(problems.iter().all(|problem| problem.fault.hint().is_some()), "{file}");
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn files_with_the_same_columns_are_a_union() {
        let of = |file| read(file).unwrap();
        let first = of(r#"{"first": ["a", "b"], "size": 3}"#);
        let points = united(&first, &of(r#"{"size": [4, 3], "first": "b"}"#)).unwrap();
        let titles: Vec<_> = points.iter().map(|it| point_title(it.values())).collect();
        assert_eq!(titles, ["first=a size=3", "first=b size=3", "first=b size=4"]);
        assert_eq!(united(&first, &of(r#"{"first": "c"}"#)), None);
        assert_eq!(united(&of(r#"{"first": "c"}"#), &first), None);
    }

    #[test]
    fn lists_multiply_and_objects_are_a_union() {
        let points = ["hydraulic infinite", "henry 1", "henry 2", "john 1", "john 2"];
        let (first, second) = (
            r#"{ "first":"hydraulic", "size":"infinite" }"#,
            r#"{ "first":["henry","john"], "size":[1,2] }"#,
        );
        for file in [
            format!("[\n{first}\n{second},\n]\n"),
            format!("[{first},{second}]"),
            format!("{first}\n{second}\n"),
            format!("\u{feff}{first},{second},\r\n"),
            format!("{first}{second}"),
        ] {
            assert_eq!(rows(&file), points, "{file}");
        }
    }

    #[test]
    fn values_keep_their_spelling_and_missing_keys_are_defaults() {
        let file = r#"{"first":[1.10,1.1,-0e+9,true,false,"\u0031\/",""]}"#;
        assert_eq!(rows(file), ["1.10", "1.1", "-0e+9", "true", "false", "1/", ""]);
        let file = r#"[{"first":"a"} {"size":[1,2],"first":"b"}, {"size": 3, "first": "c"}]"#;
        assert_eq!(rows(file), ["a 7", "b 1", "b 2", "c 3"]);
        assert_eq!(rows(r#"{} {"size":1}"#), ["7", "1"]);
        let levels = read(r#"{} {"size":1}"#).unwrap().levels(0).to_vec();
        assert_eq!(levels, ["7", "1"].map(Arc::from), "in the order in which they appear");
        assert_eq!(rows("[]"), Vec::<String>::new());
        assert_eq!(rows(" \n"), Vec::<String>::new());
    }

    #[test]
    fn each_problem_has_the_object_and_the_key() {
        for (file, expected) in [
            (r#"{"size":1}{"siez":1}"#, r#"object 2: key "siez": the task has no such input"#),
            (r#"[{"size":[]}]"#, r#"object 1: key "size": the list is empty"#),
            (r#"{"size":null}"#, r#"object 1: key "size": the value is null"#),
            (r#"{"size":[1,null]}"#, r#"object 1: key "size": the value is null"#),
            (r#"{"size":{}}"#, r#"object 1: key "size": the value is an object or an array"#),
            (
                r#"{"size":[[1]]}"#,
                r#"object 1: key "size": the list has a list or an object in it"#,
            ),
            (
                r#"{"size":["a\nb"]}"#,
                r#"object 1: key "size": the value cannot be used: it is not one line without control characters"#,
            ),
            (r#"{"size":1,"size":2}"#, r#"object 1: there are two columns "size""#),
            (
                r#"{"first":1}{"size":1}"#,
                r#"object 2: key "first": the key is missing, and the input has no default"#,
            ),
            (
                r#"{"first":1}{"first":2,"mode":"x"}"#,
                r#"object 1: key "mode": the key is missing, and the default of the input is not one line of text"#,
            ),
            (r#"{"size":[1,2,1]}"#, "object 1: a point occurs twice"),
            (r#"{"size":[1,2]}{"size":2}"#, "object 2: a point is the same as one of object 1"),
            ("{}", "object 1: the object has no fields"),
            ("{\"size\":1}\n,,{}", "object 2: line 2: expected an object, as in {\"size\": 1}"),
            ("[\n,{\"size\":1}]", "object 1: line 2: expected an object, as in {\"size\": 1}"),
            ("[{\"size\":1},\n", "object 2: line 1: the array does not end"),
            ("[{\"size\":1}]\n[]", "object 2: line 2: something follows the array"),
            ("{\"size\":1}]", "object 2: line 1: expected an object, as in {\"size\": 1}"),
            ("{\"size\":1}\n{\n\"size\":\n}", "object 2: line 4: expected value"),
            ("[1]", "object 1: line 1: expected an object, as in {\"size\": 1}"),
        ] {
            assert_eq!(problems(file), [expected], "{file}");
        }
        let many = r#"{"x":1}"#.repeat(50);
        assert_eq!(problems(&many).len(), MAX_PROBLEMS + 1);
        let list: Vec<String> = (0..4000).map(|it| it.to_string()).collect();
        let list = list.join(",");
        let product = format!(r#"{{"size":[{list}],"first":[{list}]}}"#);
        assert_eq!(problems(&product), ["object 1: there are more than 10000000 points"]);
    }
}
