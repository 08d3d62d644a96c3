//! Parameters of a run: keys and their possible values.

use std::collections::BTreeSet;

use punctual_uri::did_you_mean;

use crate::plan::document::{DocumentContent, DocumentEntry, DocumentNode, DocumentTable};
use crate::plan::error::{PlanError, PlanPlace};
use crate::plan::expression::Expression;
use crate::plan::keys;
use crate::plan::quantity::{Dimension, Quantity};
use crate::plan::ratio::Ratio;
use crate::plan::value::{ParameterValue, SecretText, literal};

/// A parameter with everything that a plan wants it to be.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its full key: `link.loss`, `options.sender.latency`.
    pub key: String,
    pub(crate) place: PlanPlace,
    /// Its values, one after the other. More than one makes an axis of the plan.
    pub(crate) alternatives: Vec<Alternative>,
}

/// One or several values of a parameter.
#[derive(Clone, Debug)]
pub(crate) enum Alternative {
    One(Written),
    Range { from: Written, to: Written, step: Written },
}

/// A value as it is written.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) text: String,
    pub(crate) place: PlanPlace,
}

/// The meaning of a written value, given the parameters that there are.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    Value(ParameterValue),
    Expression(Expression),
}

impl Parameter {
    /// Reads every parameter of a table; `prefix` is the table's name.
    pub(crate) fn read_all(prefix: &str, table: &DocumentTable) -> Result<Vec<Self>, PlanError> {
        let mut parameters = Vec::new();
        for entry in &table.entries {
            let key = format!("{prefix}.{}", entry.key);
            match &entry.value.content {
                DocumentContent::Table(inner) if !is_range(inner) => {
                    parameters.extend(Self::read_all(&key, inner)?);
                }
                _ => {
                    keys::check(&key).map_err(|message| entry.place.error(message))?;
                    parameters.push(Self::read(key, entry)?);
                }
            }
        }
        Ok(parameters)
    }

    /// Reads the value of a key.
    pub(crate) fn read(key: String, entry: &DocumentEntry) -> Result<Self, PlanError> {
        Self::from_node(key, entry.place.clone(), &entry.value)
    }

    /// Reads the value of the parameter `key` from a node.
    pub(crate) fn from_node(
        key: String,
        place: PlanPlace,
        node: &DocumentNode,
    ) -> Result<Self, PlanError> {
        let alternatives = match &node.content {
            DocumentContent::List(nodes)
                if keys::is_collected(&key) && !nodes.iter().any(is_list) =>
            {
                vec![Alternative::One(collected(node, nodes)?)]
            }
            DocumentContent::List(nodes) => {
                let read = |node: &DocumentNode| Alternative::read(&key, node);
                nodes.iter().map(read).collect::<Result<_, _>>()?
            }
            _ => vec![Alternative::read(&key, node)?],
        };
        if alternatives.is_empty() {
            return Err(place.error(format!("`{key}` has no value in its list")));
        }
        Ok(Self { key, place, alternatives })
    }

    /// Whether runs differ in it.
    pub fn is_axis(&self) -> bool {
        !matches!(self.alternatives.as_slice(), [Alternative::One(_)])
    }

    /// Everything that is written behind it.
    pub(crate) fn written(&self) -> impl Iterator<Item = &Written> {
        self.alternatives.iter().flat_map(|alternative| match alternative {
            Alternative::One(written) => vec![written],
            Alternative::Range { from, to, step } => vec![from, to, step],
        })
    }
}

impl Alternative {
    fn read(key: &str, node: &DocumentNode) -> Result<Self, PlanError> {
        match &node.content {
            DocumentContent::Table(table) => {
                table.only("a range", &["from", "to", "step"])?;
                let bound = |name: &str| {
                    let text = table.required("a range", name)?;
                    let place = table.get(name).map_or(&table.place, |entry| &entry.place).clone();
                    Ok(Written { text, place })
                };
                Ok(Self::Range { from: bound("from")?, to: bound("to")?, step: bound("step")? })
            }
            DocumentContent::List(nodes) if keys::is_collected(key) => {
                Ok(Self::One(collected(node, nodes)?))
            }
            _ => match node.text() {
                Some(text) => {
                    Ok(Self::One(Written { text: text.to_owned(), place: node.place.clone() }))
                }
                None => Err(node.place.error(format!(
                    "`{key}` must be a value, a list of values, or a range \
                     {{ from = .., to = .., step = .. }}"
                ))),
            },
        }
    }
}

impl Written {
    /// Its meaning for the parameter `key` of a plan that has these `parameters`.
    pub(crate) fn meaning(&self, key: &str, names: &Names) -> Result<Meaning, PlanError> {
        if keys::is_secret(key) {
            return Ok(Meaning::Value(ParameterValue::Secret(SecretText::new(&self.text))));
        }
        let value = literal(&self.text, keys::measure(key));
        if keys::is_textual(key) || matches!(value, ParameterValue::Quantity(_)) {
            return Ok(Meaning::Value(value));
        }
        let expression = match Expression::parse(&self.text) {
            Ok(Expression::Negative(of)) if matches!(*of, Expression::Quantity(_)) => {
                // Such as -1 for no limit.
                return Ok(Meaning::Value(value));
            }
            Ok(expression) => expression,
            Err(problem) if names.are_in(&self.text) => {
                let message = format!("`{}` is no expression: {problem}", self.text);
                return Err(self.place.error(message));
            }
            Err(_) => return Ok(Meaning::Value(value)),
        };
        let used = expression.names();
        let unknown = used.iter().find(|name| names.find(name).is_err());
        match unknown {
            None => Ok(Meaning::Expression(expression)),
            Some(name) => {
                let is_name = matches!(expression, Expression::Name(_));
                let some_known = used.iter().any(|name| names.find(name).is_ok());
                if is_name || !(expression.has_quantity() || some_known) {
                    return Ok(Meaning::Value(value));
                }
                Err(self.place.error(names.find(name).err().unwrap_or_default()))
            }
        }
    }
}

/// The parameters that expressions may name.
#[derive(Clone, Debug)]
pub(crate) struct Names(BTreeSet<String>);

impl Names {
    pub(crate) fn new<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self(keys.into_iter().map(str::to_owned).collect())
    }

    /// The full key that a name means: the whole key or its end, in any case of letters.
    pub(crate) fn find(&self, name: &str) -> Result<&str, String> {
        let lower = name.to_lowercase();
        let end = format!(".{lower}");
        let mut found: Vec<&str> = (self.0.iter().map(String::as_str))
            .filter(|key| key.to_lowercase() == lower || key.to_lowercase().ends_with(&end))
            .collect();
        found.sort_by_key(|key| key.matches('.').count());
        match found[..] {
            [] => {
                let names = self.0.iter().map(|key| keys::name(key));
                Err(format!("no parameter `{name}`{}", did_you_mean(&lower, names)))
            }
            [one] => Ok(one),
            [one, two, ..] if one.matches('.').count() < two.matches('.').count() => Ok(one),
            [one, two, ..] => Err(format!("`{name}` may be `{one}` or `{two}`: write which")),
        }
    }

    /// Whether a text speaks of one of them.
    fn are_in(&self, text: &str) -> bool {
        let words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')));
        text.contains('×') || words.into_iter().any(|word| self.find(word).is_ok())
    }
}

/// Gives a computed quantity the dimension that its parameter has.
pub(crate) fn fit(quantity: Quantity, key: &str) -> Result<Quantity, String> {
    let Some(measure) = keys::measure(key) else { return Ok(quantity) };
    match (quantity.dimension, measure.dimension) {
        (found, wanted) if found == wanted => Ok(quantity),
        (Dimension::Number, wanted) => quantity
            .number
            .times(Ratio::whole(measure.bare.into()))
            .map(|number| Quantity::new(number, wanted))
            .ok_or_else(|| "the number is too large".to_owned()),
        (Dimension::Share, Dimension::Number) => Ok(quantity),
        (found, wanted) => {
            Err(format!("`{quantity}` is {}; `{key}` must be {}", found.name(), wanted.name()))
        }
    }
}

fn is_range(table: &DocumentTable) -> bool {
    table.get("from").is_some() && table.get("to").is_some()
}

fn is_list(node: &DocumentNode) -> bool {
    matches!(node.content, DocumentContent::List(_))
}

/// A list that is one value.
fn collected(node: &DocumentNode, nodes: &[DocumentNode]) -> Result<Written, PlanError> {
    let text = |node: &DocumentNode| {
        node.text().map(str::to_owned).ok_or_else(|| node.place.error("must be a text"))
    };
    let texts = nodes.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    Ok(Written { text: texts.join("\n"), place: node.place.clone() })
}
