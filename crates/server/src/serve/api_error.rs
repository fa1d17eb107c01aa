//! Why a request fails, as a status code and JSON.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a request fails.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    why: String,
}

impl ApiError {
    pub fn new(status: StatusCode, why: impl Into<String>) -> Self {
        ApiError {
            status,
            why: why.into(),
        }
    }

    pub fn bad_request(why: impl Into<String>) -> Self {
        ApiError::new(StatusCode::BAD_REQUEST, why)
    }
}

impl From<bernstream_synopsis::SynopsisError> for ApiError {
    fn from(error: bernstream_synopsis::SynopsisError) -> Self {
        ApiError::bad_request(error.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (
            self.status,
            [(CONTENT_TYPE, "application/json")],
            json!({ "error": self.why }).to_string(),
        )
            .into_response()
    }
}
