//! Every combination of a plan's values.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::plan::error::{PlanError, PlanPlace};
use crate::plan::expression::Expression;
use crate::plan::keys;
use crate::plan::parameter::{Alternative, Meaning, Names, Parameter, Written, fit};
use crate::plan::quantity::Quantity;
use crate::plan::ratio::Ratio;
use crate::plan::value::ParameterValue;

/// The values of one run, in the order of the plan.
pub type Values = Vec<(String, ParameterValue)>;

/// Keys with the values that, all together, leave a combination out.
pub(crate) type Excluded = Vec<(String, Vec<ParameterValue>)>;

/// Parameters, and which of their combinations are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParameterGrid {
    pub(crate) parameters: Vec<Parameter>,
    /// Axes that change together, by their full keys.
    pub(crate) together: Vec<Vec<String>>,
    /// Combinations that are left out: each a list of keys with the values that exclude.
    pub(crate) exclude: Vec<Excluded>,
}

impl ParameterGrid {
    /// Gives a parameter its value, in its place if it has one.
    pub(crate) fn set(&mut self, parameter: Parameter) {
        match self.parameters.iter_mut().find(|old| old.key == parameter.key) {
            Some(old) => *old = parameter,
            None => self.parameters.push(parameter),
        }
    }

    pub(crate) fn names(&self) -> Names {
        Names::new(self.parameters.iter().map(|parameter| parameter.key.as_str()))
    }

    /// Every combination, in the order of the plan: the last axis changes fastest.
    pub(crate) fn combinations(&self) -> Result<Vec<Values>, PlanError> {
        let names = self.names();
        let mut walk = Walk {
            order: self.order(&names)?,
            chosen: vec![None; self.parameters.len()],
            found: Vec::new(),
            grid: self,
            names,
        };
        walk.choose(0)?;
        let mut found = walk.found;
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(found.into_iter().map(|(_, values)| values).filter(|v| !self.is_excluded(v)).collect())
    }

    fn is_excluded(&self, values: &Values) -> bool {
        self.exclude.iter().any(|conditions| {
            conditions.iter().all(|(key, excluded)| {
                values.iter().any(|(name, value)| name == key && excluded.contains(value))
            })
        })
    }

    /// The parameters in an order in which each comes after the ones that it is computed from.
    fn order(&self, names: &Names) -> Result<Vec<usize>, PlanError> {
        let mut sorted = Sorted { order: Vec::new(), states: vec![None; self.parameters.len()] };
        for index in 0..self.parameters.len() {
            self.visit(index, names, &mut sorted, &mut Vec::new())?;
        }
        Ok(sorted.order)
    }

    fn visit(
        &self,
        index: usize,
        names: &Names,
        sorted: &mut Sorted,
        way: &mut Vec<usize>,
    ) -> Result<(), PlanError> {
        let parameter = &self.parameters[index];
        match sorted.states[index] {
            Some(Visit::Done) => return Ok(()),
            Some(Visit::UnderWay) => {
                let start = way.iter().position(|place| *place == index).unwrap_or(0);
                let keys: Vec<&str> = (way[start..].iter().chain([&index]))
                    .map(|place| self.parameters[*place].key.as_str())
                    .collect();
                let circle = keys.join(" → ");
                return Err(parameter.place.error(format!("computed from itself: {circle}")));
            }
            None => sorted.states[index] = Some(Visit::UnderWay),
        }
        way.push(index);
        for written in parameter.written() {
            if let Meaning::Expression(expression) = written.meaning(&parameter.key, names)? {
                for name in expression.names() {
                    let key = names.find(name).map_err(|message| written.place.error(message))?;
                    let needed = self.index(key);
                    self.visit(needed, names, sorted, way)?;
                }
            }
        }
        way.pop();
        sorted.states[index] = Some(Visit::Done);
        sorted.order.push(index);
        Ok(())
    }

    fn index(&self, key: &str) -> usize {
        self.parameters
            .iter()
            .position(|parameter| parameter.key == key)
            .expect("a name is found among these parameters")
    }
}

struct Sorted {
    order: Vec<usize>,
    states: Vec<Option<Visit>>,
}

#[derive(Clone, Copy)]
enum Visit {
    UnderWay,
    Done,
}

/// A way through the values of all parameters.
struct Walk<'a> {
    grid: &'a ParameterGrid,
    names: Names,
    order: Vec<usize>,
    /// Which of its values a parameter has, and the value.
    chosen: Vec<Option<(usize, ParameterValue)>>,
    /// Places of the values in the order of the plan, and the values.
    found: Vec<(Vec<usize>, Values)>,
}

impl Walk<'_> {
    fn choose(&mut self, depth: usize) -> Result<(), PlanError> {
        let Some(&index) = self.order.get(depth) else {
            return self.keep();
        };
        let values = self.values(index)?;
        let fixed = self.fixed_by_companions(index, values.len())?;
        for (place, value) in values.into_iter().enumerate() {
            if fixed.is_none_or(|fixed| fixed == place) {
                self.chosen[index] = Some((place, value));
                self.choose(depth + 1)?;
            }
        }
        self.chosen[index] = None;
        Ok(())
    }

    fn keep(&mut self) -> Result<(), PlanError> {
        if self.found.len() >= MOST_RUNS {
            let place = &self.grid.parameters[0].place;
            return Err(place.error(format!("more than {MOST_RUNS} combinations")));
        }
        let chosen = self.chosen.iter().flatten();
        let places = chosen.clone().map(|(place, _)| *place).collect();
        let keys = self.grid.parameters.iter().map(|parameter| parameter.key.clone());
        let values = keys.zip(chosen.map(|(_, value)| value.clone())).collect();
        self.found.push((places, values));
        Ok(())
    }

    /// Which value a parameter must have because one that it changes together with has its own.
    fn fixed_by_companions(&self, index: usize, count: usize) -> Result<Option<usize>, PlanError> {
        let parameter = &self.grid.parameters[index];
        let group = self.grid.together.iter().find(|group| group.contains(&parameter.key));
        for key in group.into_iter().flatten() {
            let other = self.grid.index(key);
            if let Some((place, _)) = &self.chosen[other] {
                let others = self.values(other)?.len();
                if others != count {
                    return Err(parameter.place.error(format!(
                        "`{}` has {count} values and `{key}` has {others}; to change together \
                         they must have as many",
                        parameter.key
                    )));
                }
                return Ok(Some(*place));
            }
        }
        Ok(None)
    }

    /// Every value of a parameter, given the values that were chosen before.
    fn values(&self, index: usize) -> Result<Vec<ParameterValue>, PlanError> {
        let parameter = &self.grid.parameters[index];
        let mut values = Vec::new();
        for alternative in &parameter.alternatives {
            match alternative {
                Alternative::One(written) => values.push(self.value(&parameter.key, written)?),
                Alternative::Range { from, to, step } => {
                    let quantity = |written: &Written| {
                        self.value(&parameter.key, written)?.quantity().ok_or_else(|| {
                            written.place.error(format!("`{}` is no quantity", written.text))
                        })
                    };
                    let (first, last, by) = (quantity(from)?, quantity(to)?, quantity(step)?);
                    let steps = range(first, last, by, &step.place)?;
                    values.extend(steps.into_iter().map(ParameterValue::Quantity));
                }
            }
        }
        let secrets: BTreeSet<String> = match keys::is_secret(&parameter.key) {
            true => {
                values.iter().map(ParameterValue::exact).filter(|text| !text.is_empty()).collect()
            }
            false => BTreeSet::new(),
        };
        if secrets.len() > 1 {
            return Err(parameter.place.error(format!(
                "`{}` may be one passphrase, or one and \"\": results show none, and would not \
                 tell several apart",
                parameter.key
            )));
        }
        Ok(values)
    }

    fn value(&self, key: &str, written: &Written) -> Result<ParameterValue, PlanError> {
        match written.meaning(key, &self.names)? {
            Meaning::Value(value) => Ok(value),
            Meaning::Expression(expression) => self
                .compute(&expression)
                .and_then(|quantity| fit(quantity, key))
                .map(ParameterValue::Quantity)
                .map_err(|message| written.place.error(format!("`{}`: {message}", written.text))),
        }
    }

    fn compute(&self, expression: &Expression) -> Result<Quantity, String> {
        expression.value(&|name| {
            let key = self.names.find(name)?;
            match &self.chosen[self.grid.index(key)] {
                Some((_, ParameterValue::Quantity(quantity))) => Ok(*quantity),
                Some((_, value)) => Err(format!("`{key}` is `{value}`, no quantity")),
                None => Err(format!("`{key}` is not known yet")),
            }
        })
    }
}

/// From the first to the last, both included if the steps meet it.
fn range(
    from: Quantity,
    to: Quantity,
    step: Quantity,
    place: &PlanPlace,
) -> Result<Vec<Quantity>, PlanError> {
    if from.dimension != to.dimension || step.dimension != to.dimension {
        let message = format!("`{from}`, `{to}` and step `{step}` do not count the same");
        return Err(place.error(message));
    }
    if step.number.partial_cmp(&Ratio::whole(0)) != Some(Ordering::Greater) {
        return Err(place.error(format!("a step must be more than nothing, not `{step}`")));
    }
    if from.number > to.number {
        return Err(place.error(format!("the range ends (`{to}`) before it begins (`{from}`)")));
    }
    let mut values = Vec::new();
    let mut number = from.number;
    while number <= to.number {
        if values.len() >= MOST_RUNS {
            return Err(place.error(format!("more than {MOST_RUNS} steps from `{from}` to `{to}`")));
        }
        values.push(Quantity { number, ..from });
        number =
            number.plus(step.number).ok_or_else(|| place.error("the numbers are too large"))?;
    }
    Ok(values)
}

/// Combinations in a plan at most.
const MOST_RUNS: usize = 1_000_000;
