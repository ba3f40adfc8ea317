//! Words that answers use, as enums that a later version may add to.

/// Makes an enum of words. Written by us, so `Other` is never sent; read by clients, to whom it stands for each word of a
/// later version.
macro_rules! words {
    (
        $(#[doc = $doc:literal])+
        $name:ident { $($(#[doc = $variant_doc:literal])+ $variant:ident = $word:literal,)+ }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[doc = $variant_doc])+ #[serde(rename = $word)] $variant,)+
            /// A word of a later version. Never sent.
            #[serde(other)]
            Other,
        }

        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                let mut lines = vec![$($doc.trim().to_owned()),+];
                lines.push(String::new());
                $(lines.push(format!("- `{}`: {}", $word, [$($variant_doc.trim()),+].join(" ")));)+
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .description(Some(lines.join("\n")))
                    .enum_values(Some([$($word),+]))
                    .into()
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {}
    };
}

pub(crate) use words;
