//! The condition of `where`: an expression over the names of points, and the points for which it holds.
//!
//! A name is a number if all its texts are different finite numbers, else a text. So the operands of an operator are known
//! before any point is looked at, and nothing is silently false: a number is not compared with a text.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::condition_mistake::{
    ConditionFault, ConditionMistake, MAX_DEPTH, MOST_COMBINATIONS, TextOperand,
};
use super::points::{Decimal, SweepPoint, SweepPoints, point_title};
use crate::suggest::UnknownName;

/// A condition that points are to fulfil.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WrittenCondition", into = "WrittenCondition")]
pub struct Condition {
    text: Box<str>,
    /// The inputs of the task that it reads.
    inputs: Vec<ConditionInput>,
    /// The steps of its evaluation, on a stack of values; no recursion is needed, however long it is.
    steps: Vec<ConditionStep>,
}

/// An input of the task that a condition reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ConditionInput {
    name: Box<str>,
    /// The texts that it may have, each once.
    choices: SweepPoints,
    /// The number of the one that it has; until that is known, the first one counts.
    chosen: Option<u32>,
}

/// A condition as a cache keeps it.
#[derive(Serialize, Deserialize)]
struct WrittenCondition {
    text: Box<str>,
    inputs: Vec<ConditionInput>,
}

impl Eq for Condition {}

/// A step, and the column in which it is written, in characters from one.
#[derive(Clone, Debug, PartialEq)]
struct ConditionStep {
    column: usize,
    operation: ConditionOperation,
}

#[derive(Clone, Debug, PartialEq)]
enum ConditionOperation {
    Number(f64, Decimal),
    Text(Box<str>),
    Name(Box<str>),
    Negate,
    Not,
    Arithmetic(ArithmeticOperator),
    Compare(ComparisonOperator),
    /// Whether a value is among this number of values that follow it.
    In(usize),
    /// Goes to a step if the value on the stack is this one, else drops it.
    Unless(bool, usize),
    /// Checks that the other side of `&&` or `||` is a comparison, too.
    Truth,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArithmeticOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ComparisonOperator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl TryFrom<Box<str>> for Condition {
    type Error = ConditionFault;

    fn try_from(text: Box<str>) -> Result<Self, ConditionFault> {
        let mut parser = ConditionParser { text: &text, at: 0, depth: 0, steps: Vec::new() };
        parser.any()?;
        if !parser.rest().is_empty() {
            return Err(parser.expected("an operator or the end"));
        }
        let steps = parser.steps;
        Ok(Self { text, inputs: Vec::new(), steps })
    }
}

impl TryFrom<WrittenCondition> for Condition {
    type Error = ConditionFault;

    fn try_from(written: WrittenCondition) -> Result<Self, ConditionFault> {
        Ok(Self { inputs: written.inputs, ..Self::try_from(written.text)? })
    }
}

impl From<Condition> for WrittenCondition {
    fn from(condition: Condition) -> Self {
        Self { text: condition.text, inputs: condition.inputs }
    }
}

/// Reads a condition, and appends its steps.
struct ConditionParser<'a> {
    text: &'a str,
    /// The first byte that is not read yet.
    at: usize,
    depth: usize,
    steps: Vec<ConditionStep>,
}

type StepsRead<T = ()> = Result<T, ConditionFault>;

impl<'a> ConditionParser<'a> {
    /// Skips white space, and returns the text that is not read yet.
    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    fn fault(&self, at: usize, mistake: ConditionMistake) -> ConditionFault {
        ConditionFault { column: 1 + self.text[..at].chars().count(), mistake }
    }

    fn expected(&mut self, expected: &'static str) -> ConditionFault {
        let rest = self.rest();
        let end = rest.char_indices().find(|(at, c)| *at > 0 && !is_in_name(*c));
        let found = &rest[..end.map_or(rest.len(), |(at, _)| at)];
        let found = if found.is_empty() { "the end".to_owned() } else { format!("{found:?}") };
        self.fault(self.at, ConditionMistake::Expected { expected, found })
    }

    /// Reads the first of some operators that stands here; returns its number and where it begins.
    fn operator(&mut self, operators: &[&str]) -> Option<(usize, usize)> {
        let rest = self.rest();
        let number = operators.iter().position(|operator| rest.starts_with(operator))?;
        let at = self.at;
        self.at += operators[number].len();
        Some((number, at))
    }

    fn push(&mut self, at: usize, operation: ConditionOperation) {
        let column = 1 + self.text[..at].chars().count();
        self.steps.push(ConditionStep { column, operation });
    }

    /// Reads what `||` joins.
    fn any(&mut self) -> StepsRead {
        self.joined("||", true, Self::all)
    }

    /// Reads what `&&` joins.
    fn all(&mut self) -> StepsRead {
        self.joined("&&", false, Self::comparison)
    }

    /// Reads the operands of an operator; a side with this value decides the result.
    fn joined(
        &mut self,
        operator: &str,
        decides: bool,
        side: fn(&mut Self) -> StepsRead,
    ) -> StepsRead {
        self.rest();
        let begin = self.at;
        side(self)?;
        while self.operator(&[operator]).is_some() {
            let jump = self.steps.len();
            self.push(begin, ConditionOperation::Unless(decides, 0));
            self.rest();
            let at = self.at;
            side(self)?;
            self.push(at, ConditionOperation::Truth);
            self.steps[jump].operation = ConditionOperation::Unless(decides, self.steps.len());
        }
        Ok(())
    }

    fn comparison(&mut self) -> StepsRead {
        const COMPARISONS: [(&str, ComparisonOperator); 6] = [
            ("==", ComparisonOperator::Equal),
            ("!=", ComparisonOperator::Unequal),
            ("<=", ComparisonOperator::LessOrEqual),
            (">=", ComparisonOperator::GreaterOrEqual),
            ("<", ComparisonOperator::Less),
            (">", ComparisonOperator::Greater),
        ];
        self.sum()?;
        if let Some((number, at)) = self.operator(&COMPARISONS.map(|(operator, _)| operator)) {
            self.sum()?;
            self.push(at, ConditionOperation::Compare(COMPARISONS[number].1));
        } else if self.rest().strip_prefix("in").is_some_and(|rest| !rest.starts_with(is_in_name)) {
            let at = self.at;
            self.at += "in".len();
            self.list(at)?;
        }
        Ok(())
    }

    fn list(&mut self, at: usize) -> StepsRead {
        if self.operator(&["("]).is_none() {
            return Err(self.expected("a list in parentheses"));
        }
        let mut count = 0;
        loop {
            self.sum()?;
            count += 1;
            match self.operator(&[",", ")"]) {
                Some((0, _)) => {}
                Some(_) => break,
                None => return Err(self.expected("a comma or a parenthesis")),
            }
        }
        self.push(at, ConditionOperation::In(count));
        Ok(())
    }

    fn sum(&mut self) -> StepsRead {
        const SUMS: [ArithmeticOperator; 2] =
            [ArithmeticOperator::Add, ArithmeticOperator::Subtract];
        self.term()?;
        while let Some((number, at)) = self.operator(&["+", "-"]) {
            self.term()?;
            self.push(at, ConditionOperation::Arithmetic(SUMS[number]));
        }
        Ok(())
    }

    fn term(&mut self) -> StepsRead {
        const TERMS: [ArithmeticOperator; 3] = [
            ArithmeticOperator::Multiply,
            ArithmeticOperator::Divide,
            ArithmeticOperator::Remainder,
        ];
        self.value()?;
        while let Some((number, at)) = self.operator(&["*", "/", "%"]) {
            self.value()?;
            self.push(at, ConditionOperation::Arithmetic(TERMS[number]));
        }
        Ok(())
    }

    /// Reads a value with the signs before it, or an expression in parentheses.
    fn value(&mut self) -> StepsRead {
        if self.depth > MAX_DEPTH {
            return Err(self.fault(self.at, ConditionMistake::TooDeep));
        }
        self.depth += 1;
        let rest = self.rest();
        let at = self.at;
        match rest.chars().next() {
            Some('(') => {
                self.at += 1;
                self.any()?;
                if self.operator(&[")"]).is_none() {
                    return Err(self.expected("an operator or a parenthesis"));
                }
            }
            Some(sign @ ('-' | '!')) => {
                self.at += 1;
                self.value()?;
                let is_minus = sign == '-';
                match self.steps.last_mut().map(|step| &mut step.operation) {
                    Some(ConditionOperation::Number(number, decimal)) if is_minus => {
                        (*number, *decimal) = (0.0 - *number, decimal.negated());
                    }
                    _ if is_minus => self.push(at, ConditionOperation::Negate),
                    _ => self.push(at, ConditionOperation::Not),
                }
            }
            Some(quote @ ('\'' | '"')) => {
                let text = self.until(quote, "a text")?;
                self.push(at, ConditionOperation::Text(text.into()));
            }
            Some('{') => {
                let name = self.until('}', "a name")?;
                self.push(at, ConditionOperation::Name(name.into()));
            }
            Some('0'..='9' | '.') => self.number(rest)?,
            Some(first) if is_in_name(first) => {
                let end = rest.find(|c| !is_in_name(c)).unwrap_or(rest.len());
                if &rest[..end] == "in" {
                    return Err(self.expected("a name, a number or a text"));
                }
                self.at += end;
                self.push(at, ConditionOperation::Name(rest[..end].into()));
            }
            _ => return Err(self.expected("a name, a number or a text")),
        }
        self.depth -= 1;
        Ok(())
    }

    /// Reads up to a character behind the current one.
    fn until(&mut self, end: char, what: &'static str) -> StepsRead<&'a str> {
        let rest = &self.text[self.at + 1..];
        let Some((inside, _)) = rest.split_once(end) else {
            return Err(self.fault(self.at, ConditionMistake::Unended(what)));
        };
        self.at += inside.len() + 2;
        Ok(inside)
    }

    fn number(&mut self, rest: &str) -> StepsRead {
        let mut before = ' ';
        let end = rest.find(|c| {
            let is_sign = matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
            before = c;
            !is_in_name(c) && !is_sign
        });
        let text = &rest[..end.unwrap_or(rest.len())];
        let at = self.at;
        let Some((number, decimal)) = finite(text) else {
            return Err(self.fault(at, ConditionMistake::Number(text.to_owned())));
        };
        self.at += text.len();
        self.push(at, ConditionOperation::Number(number, decimal));
        Ok(())
    }
}

/// Whether a character may stand in a name without braces.
fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.')
}

/// The finite number that a text is, and as it is written.
fn finite(text: &str) -> Option<(f64, Decimal)> {
    // Zero has one sign.
    let number = text.parse().ok().filter(|number: &f64| number.is_finite())? + 0.0;
    Some((number, Decimal::read(text)?))
}

/// A value while a condition is evaluated.
#[derive(Clone, Copy, Debug)]
enum ConditionValue<'a> {
    /// A number, and as it is written if no arithmetic made it.
    Number(f64, Option<&'a Decimal>),
    Text(&'a str),
    Truth(bool),
}

/// The type of a value.
#[derive(Clone, Debug)]
enum Type {
    Number,
    Text(TextOperand),
    Truth,
}

/// A column of points that a condition reads, or an input with choices.
struct ConditionColumn<'a> {
    number: usize,
    /// The choice, if it is an input: it is the same at all points.
    chosen: Option<SweepPoint<'a>>,
    /// The numbers of its levels, or why it is a text.
    levels: Result<Vec<(f64, Decimal)>, TextOperand>,
}

impl<'a> ConditionColumn<'a> {
    fn from_input(input: &'a ConditionInput) -> Self {
        let chosen = input.choices.iter().nth(input.chosen.unwrap_or_default() as usize);
        Self { chosen, ..Self::from_points(&input.choices, 0) }
    }

    fn from_points(points: &SweepPoints, number: usize) -> Self {
        let name = &points.names()[number];
        let (mut levels, mut seen) = (Vec::new(), HashMap::new());
        for text in points.levels(number) {
            let Some((level, decimal)) = finite(text) else {
                let text = TextOperand::Word { name: name.clone(), text: text.to_string() };
                return Self { number, chosen: None, levels: Err(text) };
            };
            if let Some(before) = seen.insert(decimal.clone(), text) {
                let texts = [before.to_string(), text.to_string()];
                let text = TextOperand::Same { name: name.clone(), texts };
                return Self { number, chosen: None, levels: Err(text) };
            }
            levels.push((level, decimal));
        }
        Self { number, chosen: None, levels: Ok(levels) }
    }

    fn value(&'a self, point: SweepPoint<'a>) -> ConditionValue<'a> {
        let point = self.chosen.unwrap_or(point);
        match &self.levels {
            Ok(levels) => {
                let (number, decimal) = &levels[point.level_numbers()[self.number] as usize];
                ConditionValue::Number(*number, Some(decimal))
            }
            Err(_) => ConditionValue::Text(point.at(self.number)),
        }
    }
}

impl Condition {
    /// The condition as it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names of points that it reads.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let is_input = |name: &str| self.inputs().any(|input| input == name);
        let names = self.steps.iter().filter_map(|step| match &step.operation {
            ConditionOperation::Name(name) => Some(&**name),
            _ => None,
        });
        names.filter(move |name| !is_input(name))
    }

    /// The inputs of the task that it reads.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.inputs.iter().map(|input| &*input.name)
    }

    /// Whether it reads an input whose text is not known yet.
    pub fn is_open(&self) -> bool {
        self.inputs.iter().any(|input| input.chosen.is_none())
    }

    /// Reads names as inputs of the task, given all inputs with their choices.
    ///
    /// # Errors
    ///
    /// Fails with the name of an input that has no choices, and reads the others.
    pub fn read_inputs<'n>(
        &mut self,
        inputs: impl Iterator<Item = (&'n str, Option<&'n SweepPoints>)>,
    ) -> Result<(), &'n str> {
        let mut read = Ok(());
        for (name, choices) in inputs {
            if self.names().any(|it| it == name) {
                match choices.cloned() {
                    None => read = Err(name),
                    Some(choices) => {
                        let name = name.into();
                        self.inputs.push(ConditionInput { name, choices, chosen: None });
                    }
                }
            }
        }
        read
    }

    /// Returns the condition for each combination of choices that inputs may have; itself alone if all are known.
    ///
    /// # Errors
    ///
    /// Fails if there are too many.
    pub(super) fn with_each_choice(&self) -> Result<Vec<Self>, ConditionFault> {
        let count = |input: &ConditionInput| input.chosen.map_or(input.choices.len(), |_| 1);
        let all = self.inputs.iter().map(count).fold(1, usize::saturating_mul);
        if all > MOST_COMBINATIONS {
            let mistake = ConditionMistake::Combinations(all);
            return Err(ConditionFault { column: 1, mistake });
        }
        let mut conditions = vec![self.clone()];
        for (at, input) in self.inputs.iter().enumerate().filter(|(_, it)| it.chosen.is_none()) {
            let chosen = |condition: &Self, number| {
                let mut condition = condition.clone();
                condition.inputs[at].chosen = Some(number);
                condition
            };
            let numbers = 0..input.choices.len() as u32;
            let of_each = numbers.map(|number| conditions.iter().map(move |it| chosen(it, number)));
            conditions = of_each.flatten().collect();
        }
        Ok(conditions)
    }

    /// The condition with the defaults of inputs that have no text: their first choices.
    pub fn with_defaults(&self) -> Self {
        let mut condition = self.clone();
        condition.inputs.iter_mut().for_each(|it| it.chosen = it.chosen.or(Some(0)));
        condition
    }

    /// The inputs that it reads with the texts that they have, as far as these are known.
    pub(super) fn chosen(&self) -> String {
        let chosen =
            self.inputs.iter().filter_map(|input| input.choices.get(input.chosen? as usize));
        point_title(chosen.flat_map(|point| point.values()))
    }

    /// Gives inputs the texts that they have; those without a text stay open.
    pub fn choose<'t>(&mut self, text: impl Fn(&str) -> Option<&'t str>) {
        for ConditionInput { name, choices, chosen } in &mut self.inputs {
            let level = |text: &str| choices.levels(0).iter().position(|it| **it == *text);
            let number = text(name).and_then(level).and_then(|it| it.try_into().ok());
            *chosen = number.or(*chosen);
        }
    }

    /// Returns the points for which it holds, in the same order.
    ///
    /// # Errors
    ///
    /// Fails if it does not fit the points, or divides by zero at one of them.
    pub fn select(&self, points: &SweepPoints) -> Result<SweepPoints, ConditionFault> {
        let mut columns = HashMap::new();
        for step in &self.steps {
            let ConditionOperation::Name(name) = &step.operation else { continue };
            if let Some(input) = self.inputs.iter().find(|input| input.name == *name) {
                if points.column(name).is_some() {
                    return Err(step.fault(ConditionMistake::Ambiguous(name.to_string())));
                }
                columns.insert(&**name, ConditionColumn::from_input(input));
                continue;
            }
            let Some(number) = points.column(name) else {
                let unknown = UnknownName::new(&**name, points.names());
                return Err(step.fault(ConditionMistake::NoName(unknown)));
            };
            let column = || ConditionColumn::from_points(points, number);
            columns.entry(&**name).or_insert_with(column);
        }
        self.check(&columns)?;
        let mut rows = Vec::new();
        for point in points.iter() {
            if self.holds(&columns, point)? {
                rows.extend_from_slice(point.level_numbers());
            }
        }
        Ok(SweepPoints { rows, ..points.without_rows() })
    }

    /// Checks what its operators are applied to.
    fn check(&self, columns: &HashMap<&str, ConditionColumn<'_>>) -> Result<(), ConditionFault> {
        // The types of values, and the columns in which they are written.
        let mut stack: Vec<(usize, Type)> = Vec::new();
        for step in &self.steps {
            let is_of = match &step.operation {
                ConditionOperation::Number(..) => Type::Number,
                ConditionOperation::Text(text) => Type::Text(TextOperand::Quoted(text.to_string())),
                ConditionOperation::Name(name) => match &columns[&**name].levels {
                    Ok(_) => Type::Number,
                    Err(text) => Type::Text(text.clone()),
                },
                ConditionOperation::Negate | ConditionOperation::Arithmetic(_) => {
                    let count = if step.operation == ConditionOperation::Negate { 1 } else { 2 };
                    for (column, operand) in stack.split_off(stack.len() - count) {
                        let mistake = match operand {
                            Type::Number => continue,
                            Type::Text(text) => ConditionMistake::Arithmetic(text),
                            Type::Truth => ConditionMistake::NoValue,
                        };
                        return Err(ConditionFault { column, mistake });
                    }
                    Type::Number
                }
                ConditionOperation::Compare(_) | ConditionOperation::In(_) => {
                    let (count, has_order) = match &step.operation {
                        ConditionOperation::In(count) => (*count, false),
                        ConditionOperation::Compare(
                            ComparisonOperator::Equal | ComparisonOperator::Unequal,
                        ) => (1, false),
                        _ => (1, true),
                    };
                    let values = stack.split_off(stack.len() - count - 1);
                    check_comparison(&values, has_order)?;
                    Type::Truth
                }
                ConditionOperation::Not
                | ConditionOperation::Unless(..)
                | ConditionOperation::Truth => {
                    let Some((column, Type::Truth)) = stack.pop() else {
                        return Err(step.fault(ConditionMistake::NoComparison));
                    };
                    // The other side takes the place of this one.
                    if matches!(step.operation, ConditionOperation::Unless(..)) {
                        continue;
                    }
                    stack.push((column, Type::Truth));
                    continue;
                }
            };
            stack.push((step.column, is_of));
        }
        match stack.pop() {
            Some((_, Type::Truth)) => Ok(()),
            _ => Err(ConditionFault { column: 1, mistake: ConditionMistake::NoComparison }),
        }
    }

    /// Whether it holds at a point.
    fn holds(
        &self,
        columns: &HashMap<&str, ConditionColumn<'_>>,
        point: SweepPoint<'_>,
    ) -> Result<bool, ConditionFault> {
        let (mut stack, mut next) = (Vec::new(), 0);
        while let Some(step) = self.steps.get(next) {
            next += 1;
            let value = match &step.operation {
                ConditionOperation::Number(number, decimal) => {
                    ConditionValue::Number(*number, Some(decimal))
                }
                ConditionOperation::Text(text) => ConditionValue::Text(text),
                ConditionOperation::Name(name) => columns[&**name].value(point),
                ConditionOperation::Negate => match stack.pop() {
                    Some(ConditionValue::Number(number, _)) => {
                        ConditionValue::Number(-number, None)
                    }
                    other => unchecked(other),
                },
                ConditionOperation::Not => ConditionValue::Truth(is_truth(stack.pop(), false)),
                ConditionOperation::Arithmetic(operator) => match (stack.pop(), stack.pop()) {
                    (
                        Some(ConditionValue::Number(right, _)),
                        Some(ConditionValue::Number(left, _)),
                    ) => {
                        let result = operator.apply(left, right);
                        let mistake = result.map_err(|mistake| {
                            let texts = point.values().map(|(name, text)| (name, &**text));
                            step.fault(mistake(point_title(texts)))
                        });
                        ConditionValue::Number(mistake?, None)
                    }
                    (other, _) => unchecked(other),
                },
                ConditionOperation::Compare(comparison) => {
                    let order = stack.pop().zip(stack.pop()).and_then(|(it, left)| left.order(it));
                    ConditionValue::Truth(comparison.holds(order))
                }
                ConditionOperation::In(count) => {
                    let list = stack.split_off(stack.len() - count);
                    let value = stack.pop();
                    let is_it =
                        |it| value.and_then(|value| value.order(it)) == Some(Ordering::Equal);
                    ConditionValue::Truth(list.into_iter().any(is_it))
                }
                ConditionOperation::Unless(decides, end) => {
                    if is_truth(stack.last().copied(), *decides) {
                        next = *end;
                    } else {
                        stack.pop();
                    }
                    continue;
                }
                ConditionOperation::Truth => continue,
            };
            stack.push(value);
        }
        Ok(is_truth(stack.pop(), true))
    }
}

impl ConditionValue<'_> {
    /// The order of two numbers, or texts. Numbers that are equal in double precision are compared by their digits.
    fn order(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Number(left, own), Self::Number(right, others)) => {
                let written = || own.zip(others).map_or(Ordering::Equal, |(own, it)| own.cmp(it));
                Some(left.partial_cmp(&right)?.then_with(written))
            }
            (Self::Text(left), Self::Text(right)) => Some(left.cmp(right)),
            _ => None,
        }
    }
}

/// Whether a value is this truth.
fn is_truth(value: Option<ConditionValue<'_>>, is: bool) -> bool {
    matches!(value, Some(ConditionValue::Truth(truth)) if truth == is)
}

/// A value that a check would have refused.
fn unchecked(value: Option<ConditionValue<'_>>) -> ConditionValue<'_> {
    debug_assert!(false, "a condition is checked before it is evaluated");
    value.unwrap_or(ConditionValue::Truth(false))
}

impl ConditionStep {
    const fn fault(&self, mistake: ConditionMistake) -> ConditionFault {
        ConditionFault { column: self.column, mistake }
    }
}

impl ArithmeticOperator {
    fn apply(self, left: f64, right: f64) -> Result<f64, fn(String) -> ConditionMistake> {
        let result = match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide | Self::Remainder if right == 0.0 => return Err(ConditionMistake::Zero),
            Self::Divide => left / right,
            Self::Remainder => left % right,
        };
        if result.is_finite() { Ok(result) } else { Err(ConditionMistake::TooLarge) }
    }
}

impl ComparisonOperator {
    /// Whether it holds of two values with this order.
    fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::Unequal => order != Some(Ordering::Equal),
            Self::Less => order.is_some_and(Ordering::is_lt),
            Self::LessOrEqual => order.is_some_and(Ordering::is_le),
            Self::Greater => order.is_some_and(Ordering::is_gt),
            Self::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

/// Checks that the first value can be compared with each of the others.
fn check_comparison(values: &[(usize, Type)], has_order: bool) -> Result<(), ConditionFault> {
    for (column, value) in values {
        if matches!(value, Type::Truth) {
            return Err(ConditionFault { column: *column, mistake: ConditionMistake::NoValue });
        }
    }
    let Some(((first, left), others)) = values.split_first() else { return Ok(()) };
    for (column, right) in others {
        let (column, mistake) = match (left, right) {
            (Type::Text(text), Type::Number) => (first, ConditionMistake::Mixed(text.clone())),
            (Type::Number, Type::Text(text)) => (column, ConditionMistake::Mixed(text.clone())),
            (Type::Text(text), _) if has_order => (first, ConditionMistake::Order(text.clone())),
            _ => continue,
        };
        return Err(ConditionFault { column: *column, mistake });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{SheetFormat, read};
    use super::*;
    use crate::exit::Explain;

    const SHEET: &str = "n,host,version,first-size,zero\n\
                         1,red,1.1,-2,0\n2,blue,1.10,0.5,1\n10,red,1.9,1e2,0\n";

    fn points() -> SweepPoints {
        read(SheetFormat::Csv, SHEET.as_bytes()).unwrap()
    }

    fn condition(text: &str) -> Result<Condition, ConditionFault> {
        Condition::try_from(Box::from(text))
    }

    /// The numbers n of the points for which a condition holds.
    fn selected(text: &str) -> Result<Vec<String>, ConditionFault> {
        let selected = condition(text)?.select(&points())?;
        Ok(selected.iter().map(|point| point.at(0).to_string()).collect())
    }

    #[test]
    fn conditions_hold_at_points() {
        for (text, expected) in [
            ("n < 10", &["1", "2"][..]),
            ("n<=2", &["1", "2"]),
            ("n > 1 && n != 10", &["2"]),
            ("n == 1 || n >= 10", &["1", "10"]),
            ("!(n == 1)", &["2", "10"]),
            ("n in (1, 5*2)", &["1", "10"]),
            ("host == 'red' && n > 1", &["10"]),
            ("host in ('blue', \"green\")", &["2"]),
            ("version == '1.10'", &["2"]),
            ("version == \"1.1\"", &["1"]),
            ("{first-size} > 0", &["2", "10"]),
            ("{first-size}*2 == 1", &["2"]),
            ("-{first-size} == 2.", &["1"]),
            ("n / 4 == 2.5", &["10"]),
            ("n % 4 == 2", &["2", "10"]),
            ("1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 - 2 - 1 == 4", &["1", "2", "10"]),
            ("n == 1 || n == 2 && host == 'red'", &["1"]),
            ("(n == 1 || n == 2) && host == 'blue'", &["2"]),
            ("zero != 0 && 1 / zero == 1", &["2"]),
            ("zero == 0 || 1 / zero > 5", &["1", "10"]),
            ("1e1 == n", &["10"]),
            ("n < -1", &[]),
        ] {
            assert_eq!(
                selected(text),
                Ok(expected.iter().map(ToString::to_string).collect()),
                "{text}"
            );
            assert_eq!(condition(text).unwrap().text(), text);
        }
        let long = format!("n == 1{}", " || n == 1".repeat(10_000));
        assert_eq!(selected(&long).unwrap(), ["1"]);
    }

    /// Numbers that are one to a computer are compared as they are written.
    #[test]
    fn numbers_are_compared_with_all_digits() {
        let levels = "a\n9007199254740993\n0\n1e-400\n-9007199254740993\n1.0\n0.1\n";
        let points = read(SheetFormat::Csv, levels.as_bytes()).unwrap();
        for (text, count) in [
            ("a == 9007199254740992", 0),
            ("a == 9007199254740993.0", 1),
            ("a == -9007199254740992", 0),
            ("a >= 9007199254740992", 1),
            ("a < -9007199254740992", 1),
            ("a == 0", 1),
            ("a > 0", 4),
            ("a in (1, 9007199254740992, 1e-401)", 1),
            ("a != 1", 5),
            ("a == 0.1000000000000000055", 0),
            // Arithmetic rounds as computers do.
            ("a + 0 == 9007199254740992", 1),
        ] {
            let selected = condition(text).unwrap().select(&points).unwrap();
            assert_eq!(selected.iter().count(), count, "{text}");
        }
    }

    #[test]
    fn an_invalid_condition_is_an_error_not_false() {
        for (text, expected) in [
            ("", "column 1: expected a name, a number or a text, and found the end"),
            ("n <", "column 4: expected a name, a number or a text, and found the end"),
            ("n = 1", "column 3: expected an operator or the end, and found \"=\""),
            ("n < 1 < 2", "column 7: expected an operator or the end, and found \"<\""),
            ("(n < 1", "column 7: expected an operator or a parenthesis, and found the end"),
            ("n in 1", "column 6: expected a list in parentheses, and found \"1\""),
            ("n in ()", "column 7: expected a name, a number or a text, and found \")\""),
            ("n in (1 2)", "column 9: expected a comma or a parenthesis, and found \"2\""),
            ("in == 1", "column 1: expected a name, a number or a text, and found \"in\""),
            ("host == 'red", "column 9: a text begins here and does not end"),
            ("{n == 1", "column 1: a name begins here and does not end"),
            ("n == 1x", "column 6: \"1x\" is not a number"),
            ("n == 1e999", "column 6: \"1e999\" is not a number"),
            ("m == 1", "column 1: the points have no \"m\""),
            ("host == red", "column 9: the points have no \"red\""),
            ("n == '1'", "column 6: \"1\" is a text, and is compared with a number"),
            (
                "host == 1",
                "column 1: host is a text, since \"red\" is not a number, and is compared with a number",
            ),
            (
                "n == 1 && version == 1.10",
                "column 11: version is a text, since \"1.1\" and \"1.10\" are one number, and is compared with a number",
            ),
            ("n in (1, '2')", "column 10: \"2\" is a text, and is compared with a number"),
            (
                "1 + version == 2",
                "column 5: version is a text, since \"1.1\" and \"1.10\" are one number, and arithmetic needs numbers",
            ),
            ("-'1' == 1", "column 2: \"1\" is a text, and arithmetic needs numbers"),
            (
                "host < 'blue'",
                "column 1: host is a text, since \"red\" is not a number, and texts have no order",
            ),
            ("n", "column 1: expected a comparison, and this is a value"),
            ("n == 1 && host", "column 11: expected a comparison, and this is a value"),
            ("n == 2 || ( n || n == 1)", "column 13: expected a comparison, and this is a value"),
            ("n || n == 1", "column 1: expected a comparison, and this is a value"),
            ("!n", "column 1: expected a comparison, and this is a value"),
            ("(n == 1) == (n == 2)", "column 4: expected a value, and this is a comparison"),
            (
                "1 / zero > 1",
                "column 3: a division by zero, at n=1 host=red version=1.1 first-size=-2 zero=0",
            ),
            (
                "n % zero == 1",
                "column 3: a division by zero, at n=1 host=red version=1.1 first-size=-2 zero=0",
            ),
            (
                "1e308 * n * 10 > 1",
                "column 11: the result is too large, at n=1 host=red version=1.1 first-size=-2 zero=0",
            ),
            ("é == 1", "column 1: the points have no \"é\""),
            ("'é' == 1", "column 1: \"é\" is a text, and is compared with a number"),
        ] {
            let fault = selected(text).unwrap_err();
            assert_eq!(fault.to_string(), expected, "{text}");
            assert!(fault.hint().is_some(), "{text}");
        }
        for (text, sign) in [("n = 1", "=="), ("n < 1 and n > 2", "&&"), ("n < 1 | n > 2", "||")] {
            let hint = selected(text).unwrap_err().hint().unwrap();
            assert!(hint.starts_with(&format!("write {sign} here, ")), "{text}: {hint}");
        }
        let deep = |by| selected(&format!("{}n == 1{}", "(".repeat(by), ")".repeat(by)));
        assert_eq!(deep(MAX_DEPTH), Ok(vec!["1".to_owned()]));
        for by in [MAX_DEPTH + 1, 10_000] {
            assert_eq!(deep(by).unwrap_err().mistake, ConditionMistake::TooDeep);
        }
    }
}
