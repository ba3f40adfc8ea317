//! The operations that are called often enough to go straight. Those whose last word is their name are handed over as they are.

use std::sync::LazyLock;

use aws_smithy_runtime_api::client::interceptors::context::Input;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;

use crate::{Call, Form, Way, may_pass};

macro_rules! calls {
    ($($sdk:ident { $($module:ident: $operation:ident, $builder:ident, $output:ident, $error:ident $(, $taken:ident)?;)* })*) => {$($(
        impl Call for $sdk::operation::$module::builders::$builder {
            type Output = $sdk::operation::$module::$output;
            type Error = $sdk::operation::$module::$error;

            async fn send_by(&self, way: &Way) -> Result<Self::Output, SdkError<Self::Error, HttpResponse>> {
                static FORM: LazyLock<Form> =
                    LazyLock::new(|| Form::of(&$sdk::operation::$module::$operation::new()));
                $(if let Some(taker) = way.taker()
                    && let Some(answer) = taker.$taken(self.as_input()).await
                {
                    return Ok(answer);
                })?
                if let Way(Some(straight)) = way
                    && let Ok(input) = self.as_input().clone().build()
                    && let Some(answer) = FORM.call(&straight.connector, Input::erase(input)).await
                    && !(straight.repeats && answer.as_ref().is_err_and(may_pass))
                {
                    return answer;
                }
                // In a box: it has room for all that the SDK puts around a call, and whatever waits for it would have as much.
                Box::pin(self.clone().send()).await
            }
        }
    )*)*};
}

calls! {
    aws_sdk_dynamodb {
        batch_get_item: BatchGetItem, BatchGetItemFluentBuilder, BatchGetItemOutput, BatchGetItemError, batch_get_item;
        batch_write_item: BatchWriteItem, BatchWriteItemFluentBuilder, BatchWriteItemOutput, BatchWriteItemError, batch_write_item;
        delete_item: DeleteItem, DeleteItemFluentBuilder, DeleteItemOutput, DeleteItemError;
        get_item: GetItem, GetItemFluentBuilder, GetItemOutput, GetItemError;
        put_item: PutItem, PutItemFluentBuilder, PutItemOutput, PutItemError, put_item;
        query: Query, QueryFluentBuilder, QueryOutput, QueryError;
        update_item: UpdateItem, UpdateItemFluentBuilder, UpdateItemOutput, UpdateItemError, update_item;
    }
    aws_sdk_sqs {
        delete_message_batch: DeleteMessageBatch, DeleteMessageBatchFluentBuilder, DeleteMessageBatchOutput, DeleteMessageBatchError;
        receive_message: ReceiveMessage, ReceiveMessageFluentBuilder, ReceiveMessageOutput, ReceiveMessageError;
        send_message: SendMessage, SendMessageFluentBuilder, SendMessageOutput, SendMessageError;
        send_message_batch: SendMessageBatch, SendMessageBatchFluentBuilder, SendMessageBatchOutput, SendMessageBatchError;
    }
}
