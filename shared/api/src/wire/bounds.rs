//! What the types of a body's fields say about their bounds, for the OpenAPI document.
//!
//! The attributes of utoipa take literals only, and a field of a type that is not a primitive becomes a reference, without its
//! example. So bodies are described as the primitives that they look like, and the bounds are added to that.

use std::ops::{Deref, RangeInclusive};

use serde::{Deserialize, Serialize};
use tidegate_domain::bounded::Bounded;
use utoipa::openapi::schema::{AdditionalProperties, KnownFormat, Object, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{Components, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::number::Number;
use crate::problem::FieldErrors;

/// A text of at most so many bytes. What it becomes is checked by whoever reads it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct Text<const MOST: usize>(String);

/// A list of at most so many items.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct List<T, const MOST: usize>(pub(crate) Vec<T>);

impl<const MOST: usize> Deref for Text<MOST> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const MOST: usize> Text<MOST> {
    /// The text, for people: its bound is all that is asked of it. `None` when it is longer, and then that is noted.
    pub(crate) fn check(&self, field: &str, errors: &mut FieldErrors) -> Option<String> {
        let bytes = self.0.len();
        if bytes > MOST {
            let message = format!("{field} is {bytes} bytes long; {MOST} is the most: say it in fewer words");
            errors.add(field, &*self.0, message);
            return None;
        }
        Some(self.0.clone())
    }
}

impl<T, const MOST: usize> Deref for List<T, MOST> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T, const MOST: usize> Default for List<T, MOST> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const MOST: usize> List<T, MOST> {
    /// Notes a list that is empty or too long. `instead` says what to give in the place of nothing.
    pub(crate) fn check_number(&self, field: &str, instead: &str, errors: &mut FieldErrors) {
        let message = match self.len() {
            0 => format!("{field} is empty; {instead}"),
            listed if listed > MOST => {
                format!("{field} holds {listed}; {MOST} is the most, so send several calls")
            }
            _ => return,
        };
        errors.add(field, (), message);
    }
}

/// The bounds of a field.
#[derive(Debug, Clone)]
pub(crate) enum Bounds {
    /// Of a number: its least and its greatest value.
    Number(RangeInclusive<u32>),
    /// Of a text: its longest form, in bytes.
    Text(usize),
    /// Of a list: its items.
    List(usize),
}

/// A type of a field that says which bounds the field has.
pub(crate) trait HasBounds {
    const BOUNDS: Bounds;
}

impl<L: Bounded> HasBounds for Number<L> {
    const BOUNDS: Bounds = Bounds::Number(L::BOUNDS);
}

impl<const MOST: usize> HasBounds for Text<MOST> {
    const BOUNDS: Bounds = Bounds::Text(MOST);
}

impl<T, const MOST: usize> HasBounds for List<T, MOST> {
    const BOUNDS: Bounds = Bounds::List(MOST);
}

impl<T: HasBounds> HasBounds for Option<T> {
    const BOUNDS: Bounds = T::BOUNDS;
}

/// A body, or a part of one, with fields that have bounds.
pub(crate) trait BoundedFields {
    /// The fields, each with its bounds.
    fn bounds() -> Vec<(&'static str, Bounds)>;
}

/// Lists the fields of a body that have bounds. Which bounds, their types say.
macro_rules! bounded_fields {
    ($body:ty: $($field:ident),+) => {
        impl $crate::wire::bounds::BoundedFields for $body {
            fn bounds() -> Vec<(&'static str, $crate::wire::bounds::Bounds)> {
                vec![$((
                    stringify!($field),
                    $crate::wire::bounds::of_field(|body: &$body| &body.$field),
                )),+]
            }
        }
    };
}

pub(crate) use bounded_fields;

/// The bounds of the type of a field.
pub(crate) fn of_field<B, F: HasBounds>(_: fn(&B) -> &F) -> Bounds {
    F::BOUNDS
}

/// Adds the bounds of a body's fields to its schema in the document.
pub(crate) fn state_bounds<B: BoundedFields + ToSchema>(components: &mut Components) {
    let Some(RefOr::T(Schema::Object(body))) = components.schemas.get_mut(&*B::name()) else { return };
    for (field, bounds) in B::bounds() {
        match (body.properties.get_mut(field), bounds) {
            (Some(RefOr::T(Schema::Object(number))), Bounds::Number(bounds)) => set(number, &bounds),
            (Some(RefOr::T(Schema::Object(text))), Bounds::Text(most)) => text.max_length = Some(most),
            (Some(RefOr::T(Schema::Array(list))), Bounds::List(most)) => list.max_items = Some(most),
            _ => {}
        }
    }
}

/// Says in the document that an object has no members beside those that are listed.
pub(crate) fn close<P: ToSchema>(components: &mut Components) {
    if let Some(RefOr::T(Schema::Object(part))) = components.schemas.get_mut(&*P::name()) {
        part.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
    }
}

/// A bound that the type of the number has anyway is not stated.
fn set(number: &mut Object, bounds: &RangeInclusive<u32>) {
    number.minimum = Some((*bounds.start()).into());
    number.maximum = Some(*bounds.end()).filter(|most| *most < u32::MAX).map(Into::into);
}

/// A number by itself, as a parameter has it.
impl<L: Bounded> PartialSchema for Number<L> {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Int32);
        let mut number = ObjectBuilder::new().schema_type(Type::Integer).format(Some(format)).build();
        set(&mut number, &L::BOUNDS);
        RefOr::T(Schema::Object(number))
    }
}

impl<L: Bounded> ToSchema for Number<L> {}
