//! Creating the tables, for local mode and tests. On AWS the template creates them.

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
    TimeToLiveSpecification, TimeToLiveStatus,
};

use crate::tables::{EXPIRES_AT, PARTITION_KEY, SORT_KEY, Table};
use crate::{Result, Store, StoreError};

impl Store {
    /// Creates the tables that are missing. For local mode and tests; on AWS the template creates them. Repeating it
    /// changes nothing.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB does not answer, or refuses for another reason than that the table is there.
    pub async fn create_tables(&self) -> Result<()> {
        for table in Table::ALL {
            self.create_table(table).await?;
        }
        Ok(())
    }

    async fn create_table(&self, table: Table) -> Result<()> {
        let key = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
        let text = |name: &str| {
            AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S).build()
        };
        let wrong = |error: aws_sdk_dynamodb::error::BuildError| StoreError::Corrupt {
            table,
            key: String::new(),
            reason: error.to_string(),
        };
        let created = self
            .db
            .create_table()
            .table_name(self.name(table))
            .billing_mode(BillingMode::PayPerRequest)
            .key_schema(key(PARTITION_KEY, KeyType::Hash).map_err(wrong)?)
            .key_schema(key(SORT_KEY, KeyType::Range).map_err(wrong)?)
            .attribute_definitions(text(PARTITION_KEY).map_err(wrong)?)
            .attribute_definitions(text(SORT_KEY).map_err(wrong)?)
            .send()
            .await;
        match created {
            Ok(_) if table.expires() => self.enable_expiry(table).await,
            Ok(_) => Ok(()),
            // An earlier version may have made it without.
            Err(e) if e.as_service_error().is_some_and(|e| e.is_resource_in_use_exception()) => {
                match table.expires() && !self.has_expiry(table).await? {
                    true => self.enable_expiry(table).await,
                    false => Ok(()),
                }
            }
            Err(e) => Err(StoreError::aws("CreateTable", table, &e)),
        }
    }

    async fn has_expiry(&self, table: Table) -> Result<bool> {
        let said = self.db.describe_time_to_live().table_name(self.name(table)).send().await;
        let said = said.map_err(|e| StoreError::aws("DescribeTimeToLive", table, &e))?;
        let status = said.time_to_live_description.and_then(|said| said.time_to_live_status);
        Ok(matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)))
    }

    async fn enable_expiry(&self, table: Table) -> Result<()> {
        let expiry = TimeToLiveSpecification::builder().enabled(true).attribute_name(EXPIRES_AT).build();
        let expiry = expiry.map_err(|error| StoreError::Corrupt {
            table,
            key: String::new(),
            reason: error.to_string(),
        })?;
        let set = self
            .db
            .update_time_to_live()
            .table_name(self.name(table))
            .time_to_live_specification(expiry)
            .send()
            .await;
        set.map(drop).map_err(|e| StoreError::aws("UpdateTimeToLive", table, &e))
    }
}
