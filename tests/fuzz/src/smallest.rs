//! From the steps that led to a fault to the smallest that show it in a fresh world: first fewer steps, then smaller inputs.

use anyhow::Result;

use crate::fault::Fault;
use crate::input::Input;
use crate::json::Json;
use crate::numbers::TRIALS;
use crate::schema::{Request, Spoil};
use crate::stage::Stage;
use crate::step::Step;
use crate::targets::{Answer, Ending};

/// The smallest steps that were found, and whether they show the fault. `steps` end in the one that showed it.
///
/// # Errors
/// When the machinery itself fails.
pub async fn find(steps: &[Step], fault: &Fault) -> Result<(Vec<Step>, bool)> {
    let mut search = Search { fault, trials: TRIALS };
    let mut best = steps.to_vec();
    let last = best.split_off(best.len().saturating_sub(1));
    if search.shows(&last).await? {
        best = last;
    } else {
        best.extend(last);
        if !search.shows(&best).await? {
            return Ok((best, false));
        }
        best = search.fewer(best).await?;
    }
    Ok((search.smaller(best).await?, true))
}

struct Search<'f> {
    fault: &'f Fault,
    trials: usize,
}

impl Search<'_> {
    /// Whether steps show the fault in a fresh world. When too much was tried, no more do.
    async fn shows(&mut self, steps: &[Step]) -> Result<bool> {
        let Some(left) = self.trials.checked_sub(1) else { return Ok(false) };
        self.trials = left;
        let mut stage = Stage::new().await?;
        for step in steps {
            if let Some(fault) = step.take(&mut stage).await? {
                return Ok(fault.is_like(self.fault));
            }
        }
        Ok(false)
    }

    /// Leaves out ever smaller pieces.
    async fn fewer(&mut self, mut steps: Vec<Step>) -> Result<Vec<Step>> {
        let mut piece = steps.len() / 2;
        while piece > 0 {
            let mut from = 0;
            while from < steps.len() {
                let to = steps.len().min(from + piece);
                let rest: Vec<Step> = steps[..from].iter().chain(&steps[to..]).cloned().collect();
                if self.shows(&rest).await? { steps = rest } else { from = to }
            }
            piece /= 2;
        }
        Ok(steps)
    }

    /// Makes each input smaller for as long as that goes.
    async fn smaller(&mut self, mut steps: Vec<Step>) -> Result<Vec<Step>> {
        for number in 0..steps.len() {
            while let Some(smaller) = self.step_smaller(&steps, number).await? {
                steps = smaller;
            }
        }
        Ok(steps)
    }

    /// The same steps with one input a little smaller, if that still shows the fault.
    async fn step_smaller(&mut self, steps: &[Step], number: usize) -> Result<Option<Vec<Step>>> {
        let Step::Input(input) = &steps[number] else { return Ok(None) };
        for simpler in simpler(input) {
            let mut trial = steps.to_vec();
            trial[number] = Step::Input(simpler);
            if self.shows(&trial).await? {
                return Ok(Some(trial));
            }
        }
        Ok(None)
    }
}

/// Inputs that are a little smaller, those that leave out most first.
fn simpler(input: &Input) -> Vec<Input> {
    match input {
        Input::Request(request) => requests(request).into_iter().map(Input::Request).collect(),
        Input::Message(body, received) => {
            trees(body).into_iter().map(|b| Input::Message(b, *received)).collect()
        }
        Input::Releases(bodies) => {
            let without = (0..bodies.len()).map(|number| {
                let mut rest = bodies.clone();
                rest.remove(number);
                rest
            });
            let first = bodies.first().map(trees).unwrap_or_default();
            let with_smaller = first.into_iter().map(|body| [&[body][..], &bodies[1..]].concat());
            without.chain(with_smaller).filter(|bodies| !bodies.is_empty()).map(Input::Releases).collect()
        }
        Input::Answer(answer) => answers(answer).into_iter().map(Input::Answer).collect(),
        Input::QueueAnswer(_) => Vec::new(),
    }
}

fn requests(request: &Request) -> Vec<Request> {
    let mut smaller = Vec::new();
    if request.spoil != Spoil::None {
        smaller.push(Request { spoil: Spoil::None, ..request.clone() });
    }
    for number in 0..request.headers.len() {
        let mut fewer = request.clone();
        fewer.headers.remove(number);
        smaller.push(fewer);
    }
    if let Some((path, _)) = request.target.split_once('?') {
        smaller.push(Request { target: path.to_owned(), ..request.clone() });
    }
    let bodies = request.body.as_ref().map(trees).unwrap_or_default();
    smaller.extend(bodies.into_iter().map(|body| Request { body: Some(body), ..request.clone() }));
    smaller
}

fn answers(answer: &Answer) -> Vec<Answer> {
    let mut smaller = Vec::new();
    if !answer.body.is_empty() {
        smaller.push(Answer { body: Vec::new(), ..answer.clone() });
    }
    if matches!(answer.ending, Ending::Cut(_)) {
        smaller.push(Answer { ending: Ending::Close, ..answer.clone() });
    }
    for number in 0..answer.headers.len() {
        let mut fewer = answer.clone();
        fewer.headers.remove(number);
        smaller.push(fewer);
    }
    smaller
}

/// Trees with one node less, then with one node halved.
fn trees(json: &Json) -> Vec<Json> {
    let (mut without, mut halved) = (Vec::new(), Vec::new());
    for place in json.places() {
        if let Some((last, parent)) = place.split_last() {
            let mut smaller = json.clone();
            match smaller.at_mut(parent) {
                Some(Json::List(items)) => drop(items.remove(*last)),
                Some(Json::Object(members)) => drop(members.remove(*last)),
                _ => continue,
            }
            without.push(smaller);
        }
        let half = match json.at(&place) {
            Some(Json::Text(text)) if text.len() > 1 => {
                Json::Text(text[..text.floor_char_boundary(text.len() / 2)].to_owned())
            }
            Some(Json::Raw(text)) if text.len() > 40 => {
                Json::Raw(text[..text.floor_char_boundary(text.len() / 2)].to_owned())
            }
            _ => continue,
        };
        let mut smaller = json.clone();
        if let Some(node) = smaller.at_mut(&place) {
            *node = half;
        }
        halved.push(smaller);
    }
    without.into_iter().chain(halved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_and_item_is_left_out_once_and_every_long_text_halved() {
        let tree = Json::Object(vec![
            ("a".into(), Json::List(vec![Json::raw(1), Json::raw(2)])),
            ("b".into(), Json::text("long")),
        ]);
        let smaller: Vec<String> = trees(&tree).iter().map(Json::to_string).collect();
        assert_eq!(
            smaller,
            [
                r#"{"b":"long"}"#,
                r#"{"a":[2],"b":"long"}"#,
                r#"{"a":[1],"b":"long"}"#,
                r#"{"a":[1,2]}"#,
                r#"{"a":[1,2],"b":"lo"}"#
            ]
        );
    }
}
