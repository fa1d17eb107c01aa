//! Text to a tree that can be evaluated on any [`Number`].
//!
//! The parser is our own. Among the kept crates, the one that is generic over its numbers reads `-x^2` as `(-x)^2`, so
//! that a Gaussian written as on paper would grow where it should fall, and reads `max_delay` as the function `max`.

use std::iter::Peekable;
use std::str::CharIndices;

use super::error::Error;

/// What an expression can be evaluated on: floats for values, intervals for bounds.
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
pub enum Tree {
    Constant(f64),
    /// A place in the list of variables.
    Variable(usize),
    Unary(Unary, Box<Tree>),
    Binary(Binary, Box<Tree>, Box<Tree>),
    Power(Box<Tree>, i32),
}

const FUNCTIONS: [(&str, Function); 9] = [
    ("abs", Function::One(Unary::Abs)),
    ("cos", Function::One(Unary::Cos)),
    ("exp", Function::One(Unary::Exp)),
    ("ln", Function::One(Unary::Ln)),
    ("sin", Function::One(Unary::Sin)),
    ("sqrt", Function::One(Unary::Sqrt)),
    ("tanh", Function::One(Unary::Tanh)),
    ("max", Function::Two(Binary::Max)),
    ("min", Function::Two(Binary::Min)),
];

#[derive(Clone, Copy)]
enum Function {
    One(Unary),
    Two(Binary),
}

/// Reading and evaluating descend the tree, so its height is bounded.
const DEEPEST: u32 = 100;
const LONGEST: usize = 1_000;
const HIGHEST_POWER: f64 = 64.0;

impl Tree {
    /// Reads `text`; `names` are the variables, in the order of the values that [`Tree::evaluate`] takes.
    ///
    /// # Errors
    ///
    /// If the text is not an expression of these variables.
    pub fn parse(text: &str, names: &[String]) -> Result<Tree, Error> {
        let mut parser = Parser {
            text,
            names,
            rest: text.char_indices().peekable(),
            nested: 0,
        };
        if text.len() > LONGEST {
            return Err(parser.wrong(LONGEST, format!("it is longer than {LONGEST} bytes")));
        }
        let tree = parser.sum()?;
        match parser.next() {
            None => Ok(tree),
            Some((at, found)) => Err(parser.wrong(at, format!("'{found}' does not belong here"))),
        }
    }

    pub fn evaluate<T: Number>(&self, variables: &[T]) -> T {
        match self {
            Tree::Constant(value) => T::constant(*value),
            Tree::Variable(place) => variables
                .get(*place)
                .cloned()
                .unwrap_or_else(|| T::constant(0.0)),
            Tree::Unary(operation, tree) => tree.evaluate(variables).unary(*operation),
            Tree::Binary(operation, one, other) => one
                .evaluate(variables)
                .binary(*operation, other.evaluate(variables)),
            Tree::Power(tree, exponent) => tree.evaluate(variables).power(*exponent),
        }
    }

    fn binary(self, operation: Binary, other: Tree) -> Tree {
        Tree::Binary(operation, Box::new(self), Box::new(other))
    }

    fn minus(self) -> Tree {
        match self {
            Tree::Constant(value) => Tree::Constant(-value),
            tree => Tree::Unary(Unary::Minus, Box::new(tree)),
        }
    }
}

/// `sum = product {(+|-) product}`, `product = signed {(*|/) signed}`, `signed = {+|-} power`,
/// `power = atom [^ signed]`: powers bind more than signs, and to the right.
struct Parser<'a> {
    text: &'a str,
    names: &'a [String],
    rest: Peekable<CharIndices<'a>>,
    nested: u32,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<Tree, Error> {
        let mut sum = self.product()?;
        while let Some(operation) = self.operator(&[('+', Binary::Plus), ('-', Binary::Minus)]) {
            sum = sum.binary(operation, self.product()?);
        }
        Ok(sum)
    }

    fn product(&mut self) -> Result<Tree, Error> {
        let mut product = self.signed()?;
        while let Some(operation) = self.operator(&[('*', Binary::Times), ('/', Binary::Over)]) {
            product = product.binary(operation, self.signed()?);
        }
        Ok(product)
    }

    /// Whatever is nested passes through here.
    fn signed(&mut self) -> Result<Tree, Error> {
        self.nested += 1;
        if self.nested > DEEPEST {
            return Err(self.wrong(
                0,
                format!("more than {DEEPEST} operations inside one another"),
            ));
        }
        let tree = match self.operator(&[('+', Binary::Plus), ('-', Binary::Minus)]) {
            Some(Binary::Minus) => self.signed().map(Tree::minus),
            Some(_) => self.signed(),
            None => self.power(),
        };
        self.nested -= 1;
        tree
    }

    fn power(&mut self) -> Result<Tree, Error> {
        let base = self.atom()?;
        if self.operator(&[('^', Binary::Power)]).is_none() {
            return Ok(base);
        }
        Ok(match self.signed()? {
            Tree::Constant(value) if value.fract() == 0.0 && value.abs() <= HIGHEST_POWER => {
                Tree::Power(Box::new(base), value as i32)
            }
            exponent => base.binary(Binary::Power, exponent),
        })
    }

    fn atom(&mut self) -> Result<Tree, Error> {
        match self.next() {
            None => Err(self.wrong(self.text.len(), "it ends too early".into())),
            Some((_, '(')) => {
                let inside = self.sum()?;
                self.expect(')')?;
                Ok(inside)
            }
            Some((at, first)) if first.is_ascii_digit() || first == '.' => self.number(at),
            Some((at, first)) if starts_name(first) => self.name(at, first),
            Some((at, found)) => Err(self.wrong(at, format!("'{found}' does not belong here"))),
        }
    }

    fn number(&mut self, at: usize) -> Result<Tree, Error> {
        let mut last = ' ';
        let mut is_number = |c: char| {
            let is_sign = matches!(c, '+' | '-') && matches!(last, 'e' | 'E');
            let goes_on = c.is_ascii_alphanumeric() || c == '.' || is_sign;
            last = c;
            goes_on
        };
        while self.rest.next_if(|(_, c)| is_number(*c)).is_some() {}
        let written = self.since(at).to_string();
        match written.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Tree::Constant(value)),
            _ => Err(self.wrong(
                at,
                format!("'{written}' is not a number; products are written with *"),
            )),
        }
    }

    /// A constant, a function with its arguments, or a variable: parts joined by dots, each a word or in double quotes.
    fn name(&mut self, at: usize, mut first: char) -> Result<Tree, Error> {
        let mut name = String::new();
        loop {
            if first == '"' {
                while let Some((_, c)) = self.rest.next_if(|(_, c)| *c != '"') {
                    name.push(c);
                }
                self.expect('"')?;
            } else {
                name.push(first);
                while let Some((_, c)) =
                    self.rest.next_if(|(_, c)| c.is_alphanumeric() || *c == '_')
                {
                    name.push(c);
                }
            }
            if self.rest.next_if(|(_, c)| *c == '.').is_none() {
                break;
            }
            name.push('.');
            first = match self.rest.next() {
                Some((_, c)) if starts_name(c) => c,
                _ => return Err(self.wrong(at, format!("'{name}' ends with a dot"))),
            };
        }
        if let Some(place) = self.names.iter().position(|known| *known == name) {
            return Ok(Tree::Variable(place));
        }
        match FUNCTIONS.into_iter().find(|(known, _)| *known == name) {
            Some((_, Function::One(operation))) => {
                self.expect('(')?;
                let argument = self.sum()?;
                self.expect(')')?;
                Ok(Tree::Unary(operation, Box::new(argument)))
            }
            Some((_, Function::Two(operation))) => {
                self.expect('(')?;
                let one = self.sum()?;
                self.expect(',')?;
                let other = self.sum()?;
                self.expect(')')?;
                Ok(one.binary(operation, other))
            }
            None if name == "pi" => Ok(Tree::Constant(std::f64::consts::PI)),
            None => {
                let functions = FUNCTIONS.map(|(name, _)| name).join(", ");
                let variables = self.names.join(", ");
                Err(self.wrong(
                    at,
                    format!("'{name}' is unknown: there are {variables}, pi, and {functions}"),
                ))
            }
        }
    }

    fn operator(&mut self, known: &[(char, Binary)]) -> Option<Binary> {
        self.skip_spaces();
        let (_, found) = self.rest.peek()?;
        let (_, operation) = known.iter().find(|(written, _)| written == found)?;
        self.rest.next();
        Some(*operation)
    }

    fn expect(&mut self, wanted: char) -> Result<(), Error> {
        match self.next() {
            Some((_, found)) if found == wanted => Ok(()),
            Some((at, found)) => {
                Err(self.wrong(at, format!("'{wanted}' was expected, not '{found}'")))
            }
            None => Err(self.wrong(self.text.len(), format!("'{wanted}' is missing"))),
        }
    }

    fn next(&mut self) -> Option<(usize, char)> {
        self.skip_spaces();
        self.rest.next()
    }

    fn skip_spaces(&mut self) {
        while self.rest.next_if(|(_, c)| c.is_whitespace()).is_some() {}
    }

    fn since(&mut self, at: usize) -> &str {
        let end = self.rest.peek().map_or(self.text.len(), |(end, _)| *end);
        self.text.get(at..end).unwrap_or_default()
    }

    fn wrong(&self, at: usize, what: String) -> Error {
        Error::Syntax {
            column: self.text.get(..at).unwrap_or_default().chars().count() + 1,
            what,
        }
    }
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
        Tree::parse(text, &names)
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
            let Err(Error::Syntax {
                column: found,
                what,
            }) = Tree::parse(text, &names)
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
        let words = |text: &str| match Tree::parse(text, &names) {
            Err(Error::Syntax { what, .. }) => what,
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
        let longest = Tree::parse(&vec!["x"; 500].join("+"), &names).unwrap();
        assert_eq!(longest.evaluate(&[2.0]), 1000.0);
    }
}
