//! Text to a tree that can be evaluated on any [`Number`].
//!
//! The parser is our own. Among the kept crates, the one that is generic over its numbers reads `-x^2` as `(-x)^2`, so
//! that a Gaussian written as on paper would grow where it should fall, and reads `max_delay` as the function `max`.

use super::error::ExpressionError;

/// A number that an expression can be evaluated on: floats for values, intervals for bounds.
pub trait Number: Clone {
    fn constant(value: f64) -> Self;
    fn unary(self, operation: Unary) -> Self;
    fn binary(self, operation: Binary, other: Self) -> Self;
    fn power(self, exponent: i32) -> Self;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Minus,
    Abs,
    Cos,
    Exp,
    Ln,
    Sin,
    Sqrt,
    Tanh,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Plus,
    Minus,
    Times,
    Over,
    Max,
    Min,
    /// A power whose exponent is no whole number: its base must be positive.
    Power,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionTree {
    Constant(f64),
    /// A place in the list of variables.
    Variable(usize),
    Unary(Unary, Box<ExpressionTree>),
    Binary(Binary, Box<ExpressionTree>, Box<ExpressionTree>),
    Power(Box<ExpressionTree>, i32),
}

const FUNCTIONS: [&str; 9] = [
    "abs", "cos", "exp", "ln", "sin", "sqrt", "tanh", "max", "min",
];

#[derive(Clone, Copy)]
enum NamedFunction {
    One(Unary),
    Two(Binary),
}

impl NamedFunction {
    /// Function of one of the names [`FUNCTIONS`].
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "abs" => NamedFunction::One(Unary::Abs),
            "cos" => NamedFunction::One(Unary::Cos),
            "exp" => NamedFunction::One(Unary::Exp),
            "ln" => NamedFunction::One(Unary::Ln),
            "sin" => NamedFunction::One(Unary::Sin),
            "sqrt" => NamedFunction::One(Unary::Sqrt),
            "tanh" => NamedFunction::One(Unary::Tanh),
            "max" => NamedFunction::Two(Binary::Max),
            "min" => NamedFunction::Two(Binary::Min),
            _ => return None,
        })
    }
}

/// Reading and evaluating descend the tree, so its height is bounded.
const DEEPEST: u32 = 100;
const LONGEST: usize = 1_000;
const HIGHEST_POWER: f64 = 64.0;

impl ExpressionTree {
    /// Reads `text`; `names` are the variables, in the order of the values that [`ExpressionTree::evaluate`] takes.
    ///
    /// # Errors
    ///
    /// If the text is not an expression of these variables.
    pub fn parse(text: &str, names: &[String]) -> Result<ExpressionTree, ExpressionError> {
        let mut parser = Parser {
            text,
            names,
            position: 0,
            nested: 0,
        };
        if text.len() > LONGEST {
            return Err(parser.syntax_error(LONGEST, format!("it is longer than {LONGEST} bytes")));
        }
        let tree = parser.sum()?;
        parser.skip_spaces();
        match parser.peek() {
            None => Ok(tree),
            Some(found) => {
                let what = format!("'{found}' does not belong here");
                Err(parser.syntax_error(parser.position, what))
            }
        }
    }

    pub fn evaluate<T: Number>(&self, variables: &[T]) -> T {
        match self {
            ExpressionTree::Constant(value) => T::constant(*value),
            ExpressionTree::Variable(place) => variables
                .get(*place)
                .cloned()
                .unwrap_or_else(|| T::constant(0.0)),
            ExpressionTree::Unary(operation, tree) => tree.evaluate(variables).unary(*operation),
            ExpressionTree::Binary(operation, one, other) => one
                .evaluate(variables)
                .binary(*operation, other.evaluate(variables)),
            ExpressionTree::Power(tree, exponent) => tree.evaluate(variables).power(*exponent),
        }
    }

    fn binary(self, operation: Binary, other: ExpressionTree) -> ExpressionTree {
        ExpressionTree::Binary(operation, Box::new(self), Box::new(other))
    }

    fn minus(self) -> ExpressionTree {
        match self {
            ExpressionTree::Constant(value) => ExpressionTree::Constant(-value),
            tree => ExpressionTree::Unary(Unary::Minus, Box::new(tree)),
        }
    }
}

/// `sum = product {(+|-) product}`, `product = signed {(*|/) signed}`, `signed = {+|-} power`,
/// `power = atom [^ signed]`: powers bind more than signs, and to the right.
struct Parser<'a> {
    text: &'a str,
    names: &'a [String],
    /// Bytes that were read.
    position: usize,
    nested: u32,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<ExpressionTree, ExpressionError> {
        let mut sum = self.product()?;
        while let Some(operation) = self.operator(sum_operator) {
            sum = sum.binary(operation, self.product()?);
        }
        Ok(sum)
    }

    fn product(&mut self) -> Result<ExpressionTree, ExpressionError> {
        let mut product = self.signed()?;
        while let Some(operation) = self.operator(product_operator) {
            product = product.binary(operation, self.signed()?);
        }
        Ok(product)
    }

    /// Whatever is nested passes through here.
    fn signed(&mut self) -> Result<ExpressionTree, ExpressionError> {
        self.nested += 1;
        if self.nested > DEEPEST {
            let what = format!("more than {DEEPEST} operations inside one another");
            return Err(self.syntax_error(0, what));
        }
        let tree = match self.operator(sum_operator) {
            Some(Binary::Minus) => self.signed().map(ExpressionTree::minus),
            Some(_) => self.signed(),
            None => self.power(),
        };
        self.nested -= 1;
        tree
    }

    fn power(&mut self) -> Result<ExpressionTree, ExpressionError> {
        let base = self.atom()?;
        if self.operator(power_operator).is_none() {
            return Ok(base);
        }
        Ok(match self.signed()? {
            ExpressionTree::Constant(value)
                if value.fract() == 0.0 && value.abs() <= HIGHEST_POWER =>
            {
                ExpressionTree::Power(Box::new(base), value as i32)
            }
            exponent => base.binary(Binary::Power, exponent),
        })
    }

    fn atom(&mut self) -> Result<ExpressionTree, ExpressionError> {
        self.skip_spaces();
        match self.peek() {
            None => Err(self.syntax_error(self.position, "it ends too early".into())),
            Some('(') => {
                self.advance();
                let inside = self.sum()?;
                self.expect(')')?;
                Ok(inside)
            }
            Some(first) if first.is_ascii_digit() || first == '.' => self.number(),
            Some(first) if starts_name(first) => self.name(),
            Some(found) => {
                let what = format!("'{found}' does not belong here");
                Err(self.syntax_error(self.position, what))
            }
        }
    }

    fn number(&mut self) -> Result<ExpressionTree, ExpressionError> {
        let start = self.position;
        let mut last = ' ';
        while let Some(next) = self.peek() {
            let is_sign = matches!(next, '+' | '-') && matches!(last, 'e' | 'E');
            if !next.is_ascii_alphanumeric() && next != '.' && !is_sign {
                break;
            }
            last = next;
            self.advance();
        }
        let written = &self.text[start..self.position];
        match written.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(ExpressionTree::Constant(value)),
            _ => {
                let what = format!("'{written}' is not a number; products are written with *");
                Err(self.syntax_error(start, what))
            }
        }
    }

    /// A constant, a function with its arguments, or a variable.
    fn name(&mut self) -> Result<ExpressionTree, ExpressionError> {
        let start = self.position;
        let name = self.dotted_name()?;
        if let Some(place) = self.names.iter().position(|known| *known == name) {
            return Ok(ExpressionTree::Variable(place));
        }
        match NamedFunction::named(&name) {
            Some(NamedFunction::One(operation)) => {
                self.expect('(')?;
                let argument = self.sum()?;
                self.expect(')')?;
                Ok(ExpressionTree::Unary(operation, Box::new(argument)))
            }
            Some(NamedFunction::Two(operation)) => {
                self.expect('(')?;
                let one = self.sum()?;
                self.expect(',')?;
                let other = self.sum()?;
                self.expect(')')?;
                Ok(one.binary(operation, other))
            }
            None if name == "pi" => Ok(ExpressionTree::Constant(std::f64::consts::PI)),
            None => {
                let functions = FUNCTIONS.join(", ");
                let variables = self.names.join(", ");
                let what =
                    format!("'{name}' is unknown: there are {variables}, pi, and {functions}");
                Err(self.syntax_error(start, what))
            }
        }
    }

    /// Parts joined by dots, each a word or in double quotes.
    fn dotted_name(&mut self) -> Result<String, ExpressionError> {
        let start = self.position;
        let mut name = String::new();
        loop {
            if self.peek() == Some('"') {
                self.advance();
                name.push_str(self.take_while(|c| c != '"'));
                self.expect('"')?;
            } else {
                name.push_str(self.take_while(|c| c.is_alphanumeric() || c == '_'));
            }
            if self.peek() != Some('.') {
                return Ok(name);
            }
            self.advance();
            name.push('.');
            if !self.peek().is_some_and(starts_name) {
                return Err(self.syntax_error(start, format!("'{name}' ends with a dot")));
            }
        }
    }

    /// Reads an operator, if the next character is one that `known` knows.
    fn operator(&mut self, known: fn(char) -> Option<Binary>) -> Option<Binary> {
        self.skip_spaces();
        let operation = known(self.peek()?)?;
        self.advance();
        Some(operation)
    }

    fn expect(&mut self, wanted: char) -> Result<(), ExpressionError> {
        self.skip_spaces();
        match self.peek() {
            Some(found) if found == wanted => {
                self.advance();
                Ok(())
            }
            Some(found) => {
                let what = format!("'{wanted}' was expected, not '{found}'");
                Err(self.syntax_error(self.position, what))
            }
            None => Err(self.syntax_error(self.position, format!("'{wanted}' is missing"))),
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.position..].chars().next()
    }

    /// Goes on to the next character.
    fn advance(&mut self) {
        self.position += self.peek().map_or(0, char::len_utf8);
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &str {
        let start = self.position;
        while self.peek().is_some_and(&belongs) {
            self.advance();
        }
        &self.text[start..self.position]
    }

    fn skip_spaces(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn syntax_error(&self, position: usize, what: String) -> ExpressionError {
        ExpressionError::Syntax {
            column: self
                .text
                .get(..position)
                .unwrap_or_default()
                .chars()
                .count()
                + 1,
            what,
        }
    }
}

fn sum_operator(written: char) -> Option<Binary> {
    match written {
        '+' => Some(Binary::Plus),
        '-' => Some(Binary::Minus),
        _ => None,
    }
}

fn product_operator(written: char) -> Option<Binary> {
    match written {
        '*' => Some(Binary::Times),
        '/' => Some(Binary::Over),
        _ => None,
    }
}

fn power_operator(written: char) -> Option<Binary> {
    (written == '^').then_some(Binary::Power)
}

fn starts_name(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == '"'
}

/// By `libm`, whose last bit is the same on every host: the system's depends on its processor, and absorbers and workers must agree.
impl Number for f64 {
    fn constant(value: f64) -> Self {
        value
    }

    #[inline]
    fn unary(self, operation: Unary) -> Self {
        match operation {
            Unary::Minus => -self,
            Unary::Abs => self.abs(),
            Unary::Cos => libm::cos(self),
            Unary::Exp => libm::exp(self),
            Unary::Ln => libm::log(self),
            Unary::Sin => libm::sin(self),
            Unary::Sqrt => self.sqrt(),
            Unary::Tanh => libm::tanh(self),
        }
    }

    #[inline]
    fn binary(self, operation: Binary, other: Self) -> Self {
        match operation {
            Binary::Plus => self + other,
            Binary::Minus => self - other,
            Binary::Times => self * other,
            Binary::Over => self / other,
            Binary::Max => self.max(other),
            Binary::Min => self.min(other),
            Binary::Power => libm::pow(self, other),
        }
    }

    #[inline]
    fn power(self, exponent: i32) -> Self {
        self.powi(exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> f64 {
        let names = ["x", "at.x", "dep delay", "at.dep delay", "max_x"].map(String::from);
        ExpressionTree::parse(text, &names)
            .unwrap_or_else(|error| panic!("{text}: {error}"))
            .evaluate(&[3.0, 2.0, 5.0, 7.0, 11.0])
    }

    #[test]
    fn what_is_written_means_what_it_means_on_paper() {
        for (text, meant) in [
            ("1 - 2 - 3", -4.0),
            ("2 + 3*4", 14.0),
            ("8/4/2", 1.0),
            ("-x^2", -9.0),
            ("(-x)^2", 9.0),
            ("2^-2", 0.25),
            ("2^3^2", 512.0),
            ("-2^-2", -0.25),
            ("2*-x", -6.0),
            ("- -x + +1", 4.0),
            ("1e-3*x", 0.003),
            ("1.5E+2", 150.0),
            (".5", 0.5),
            ("exp(-(x - at.x)^2 / 2)", (-0.5_f64).exp()),
            ("\"dep delay\" - at.\"dep delay\"", -2.0),
            ("max_x", 11.0),
            ("max(min(x, at.x), x - 5)", 2.0),
            ("max(1, 2) + min(3, (4 - 5)*2)", 0.0),
            (
                "sin(pi/2) + cos(0) + tanh(0) + abs(-1) + sqrt(4) + ln(exp(1))",
                6.0,
            ),
            ("x^0.5", 3.0_f64.sqrt()),
            ("x^at.x", 9.0),
            ("\tx\n", 3.0),
        ] {
            assert!(
                (value(text) - meant).abs() < 1e-12,
                "{text}: {} and not {meant}",
                value(text)
            );
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_place() {
        let names = ["x".to_string()];
        for (text, column, words) in [
            ("", 1, "ends too early"),
            ("x +", 4, "ends too early"),
            ("x + * x", 5, "'*' does not belong here"),
            ("2x", 1, "products are written with *"),
            ("x x", 3, "'x' does not belong here"),
            ("(x", 3, "')' is missing"),
            ("x)", 2, "')' does not belong here"),
            ("max(x)", 6, "',' was expected, not ')'"),
            ("exp x", 5, "'(' was expected"),
            ("\"x", 3, "'\"' is missing"),
            ("é + 1", 1, "'é' is unknown: there are x, pi, and abs"),
            ("x + é*", 5, "unknown"),
            ("at.", 1, "ends with a dot"),
            ("1e999", 1, "is not a number"),
            ("x ; y", 3, "';' does not belong here"),
        ] {
            let Err(ExpressionError::Syntax {
                column: found,
                what,
            }) = ExpressionTree::parse(text, &names)
            else {
                panic!("{text} was read")
            };
            assert!(
                found == column && what.contains(words),
                "{text}: {found} {what}"
            );
        }
    }

    #[test]
    fn no_text_is_too_long_for_the_stack() {
        let names = ["x".to_string()];
        let words = |text: &str| match ExpressionTree::parse(text, &names) {
            Err(ExpressionError::Syntax { what, .. }) => what,
            read => panic!("{read:?}"),
        };
        for text in [
            "(".repeat(900),
            "-".repeat(900),
            vec!["x"; 490].join("^"),
            "exp(".repeat(200),
        ] {
            assert_eq!(words(&text), "more than 100 operations inside one another");
        }
        assert_eq!(
            words(&vec!["x"; 501].join("+")),
            "it is longer than 1000 bytes"
        );
        let longest = ExpressionTree::parse(&vec!["x"; 500].join("+"), &names).unwrap();
        assert_eq!(longest.evaluate(&[2.0]), 1000.0);
    }
}
